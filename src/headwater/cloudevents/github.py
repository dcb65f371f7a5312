"""GitHub webhooks as CloudEvents, following the adapter document of the CloudEvents specification (adapters/github.md).

For each kind of webhook the document defines where `type`, `source`, `subject` and `time` come from; `id` is the
delivery id, and `data` is the request body, byte for byte. Kinds that it does not define have rows here that follow its
pattern. An unknown kind becomes `com.github.<event>.<action>`, with the repository (else the organization, the account,
the sender) as its source and without a subject.

Where the document is unclear or GitHub deviates from it:

* "Current time" is the caller's `received`, because nothing here reads a clock. Without it such an event has no time.
* A time that is not an RFC 3339 timestamp (a bare date) is skipped; seconds since 1970 are converted to one.
* The type of a `status` ends with its state, and that of a `team_add`, which has no action, with the event.
* A `release` has the time of its creation or publication. An edit or a deletion has its time of arrival.
* A delivery without an id gets one from the hash of its event and body: the same webhook always has the same id.
"""

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

import msgspec

from headwater.cloudevents import attributes as rules
from headwater.cloudevents.attributes import refuse
from headwater.cloudevents.event import JSON_CONTENT_TYPE, CloudEvent, decode_json, encode_json, media_type
from headwater.cloudevents.json_format import NOT_AN_OBJECT

TYPE_PREFIX: Final = "com.github."
EVENT_HEADER: Final = "X-GitHub-Event"
DELIVERY_HEADER: Final = "X-GitHub-Delivery"

Payload = dict[str, Any]
Place = str | Callable[[Payload], object]  # a dotted path into the payload, or a function of it


class _Row(NamedTuple):
    """The mapping of one kind of webhook. The first of `times` that holds a timestamp is used."""

    type: str  # without the prefix; the values at `parts` are appended
    parts: tuple[str, ...]
    source: Place
    subject: str | None = None
    times: tuple[Place, ...] = ()


def _comment_source(payload: Payload) -> object:
    url, commit = _at(payload, "comment.url"), _at(payload, "comment.commit_id")
    return f"{url}/{commit}" if url and commit else url


def _marketplace_source(payload: Payload) -> object:
    """The sender's URL without its last segment, the sender's name."""
    url = _at(payload, "sender.url")
    return url.rpartition("/")[0] if isinstance(url, str) else None


def _release_time(payload: Payload) -> object:
    match payload.get("action"):
        case "created":
            return _at(payload, "release.created_at")
        case "published" | "released" | "prereleased":
            return _at(payload, "release.published_at")
        case _:
            return None


_ACTION: Final = ("action",)
_REPOSITORY: Final = "repository.url"
_OWNER: Final = "repository.owner.url"
_ACCOUNT: Final = "installation.account.url"
_ORGANIZATION: Final = "organization.url"


def _security_source(payload: Payload) -> object:
    return "github.com"


_ROWS: Final = {
    # From the document, in its order.
    "check_run": _Row(
        "check_run", _ACTION, _REPOSITORY, "check_run.id", ("check_run.completed_at", "check_run.started_at")
    ),
    "check_suite": _Row("check_suite", _ACTION, _REPOSITORY, "check_suite.id", ("check_suite.updated_at",)),
    "commit_comment": _Row("commit_comment", _ACTION, _comment_source, "comment.id", ("comment.updated_at",)),
    "content_reference": _Row("content_reference", _ACTION, _REPOSITORY, "content_reference.id"),
    "create": _Row("create", ("ref_type",), _REPOSITORY, "ref"),
    "delete": _Row("delete", ("ref_type",), _REPOSITORY, "ref"),
    "deploy_key": _Row("deploy_key", _ACTION, _REPOSITORY, "key.id", ("key.deleted_at", "key.created_at")),
    "deployment": _Row("deployment", (), _REPOSITORY, "deployment.id", ("deployment.updated_at",)),
    "deployment_status": _Row(
        "deployment_status",
        ("deployment_status.state",),
        "deployment.url",
        "deployment_status.url",
        ("deployment_status.updated_at",),
    ),
    "fork": _Row("fork", (), _REPOSITORY, "forkee.url", ("forkee.created_at",)),
    "github_app_authorization": _Row("github_app_authorization", (), "sender.url"),
    "gollum": _Row("gollum", (), _REPOSITORY),
    "installation": _Row("installation", _ACTION, _ACCOUNT, "installation.id", ("installation.updated_at",)),
    "installation_repositories": _Row(
        "installation_repository", _ACTION, _ACCOUNT, "installation.id", ("installation.updated_at",)
    ),
    "issue_comment": _Row("issue_comment", _ACTION, "issue.url", "comment.id", ("comment.updated_at",)),
    "issues": _Row("issue", _ACTION, _REPOSITORY, "issue.number", ("issue.updated_at",)),
    "label": _Row("label", _ACTION, _REPOSITORY, "label.name"),
    "marketplace_purchase": _Row(
        "marketplace_purchase",
        _ACTION,
        _marketplace_source,
        "marketplace_purchase.account.login",
        ("effective_date",),
    ),
    "member": _Row("member", _ACTION, _REPOSITORY, "member.login"),
    "membership": _Row("membership", ("scope", "action"), "team.url", "member.login"),
    "meta": _Row("meta", _ACTION, _REPOSITORY, "hook_id", ("hook.updated_at",)),
    "milestone": _Row("milestone", _ACTION, _REPOSITORY, "milestone.number", ("milestone.updated_at",)),
    "organization": _Row("organization", _ACTION, _ORGANIZATION, "membership.user.login"),
    "org_block": _Row("org_block", _ACTION, _ORGANIZATION, "blocked_user.login"),
    # The document says pusher.updated_at, which GitHub does not send.
    "page_build": _Row("page_build", (), _REPOSITORY, "build.url", ("pusher.updated_at", "build.updated_at")),
    "project_card": _Row("project_card", _ACTION, _REPOSITORY, "project_card.id", ("project_card.updated_at",)),
    "project_column": _Row("project_column", _ACTION, _REPOSITORY, "project_column.id", ("project_column.updated_at",)),
    "project": _Row("project", _ACTION, _REPOSITORY, "project.id", ("project.updated_at",)),
    "public": _Row("public", (), _OWNER, "repository.name", ("repository.updated_at",)),
    "pull_request": _Row("pull_request", _ACTION, _REPOSITORY, "number", ("pull_request.updated_at",)),
    "pull_request_review": _Row(
        "pull_request_review", _ACTION, "pull_request.url", "review.id", ("review.submitted_at",)
    ),
    "pull_request_review_comment": _Row(
        "pull_request_review_comment", _ACTION, "pull_request.url", "comment.id", ("pull_request.updated_at",)
    ),
    "push": _Row("push", (), _REPOSITORY, "ref"),
    "registry_package": _Row(
        "registry_package",
        _ACTION,
        _REPOSITORY,
        "registry_package.html_url",
        ("registry_package.updated_at",),
    ),
    "release": _Row("release", _ACTION, _REPOSITORY, "release.id", (_release_time,)),
    "repository": _Row("repository", _ACTION, _OWNER, "repository.name", ("repository.updated_at",)),
    "repository_import": _Row("repository_import", (), _OWNER, "repository.name", ("repository.updated_at",)),
    "repository_vulnerability_alert": _Row("repository_vulnerability_alert", _ACTION, _REPOSITORY, "alert.id"),
    "security_advisory": _Row(
        "security_advisory",
        _ACTION,
        _security_source,
        "security_advisory.ghsa_id",
        ("security_advisory.updated_at",),
    ),
    "star": _Row("star", _ACTION, _REPOSITORY, None, ("starred_at",)),
    "status": _Row("status", ("state",), _REPOSITORY, "sha", ("updated_at",)),
    "team": _Row("team", _ACTION, _REPOSITORY, "team.id", ("updated_at",)),
    "team_add": _Row("team_add", _ACTION, _REPOSITORY, "team.id"),
    "watch": _Row("watch", _ACTION, _REPOSITORY),
    # Not in the document.
    "branch_protection_rule": _Row("branch_protection_rule", _ACTION, _REPOSITORY, "rule.id", ("rule.updated_at",)),
    "code_scanning_alert": _Row(
        "code_scanning_alert",
        _ACTION,
        _REPOSITORY,
        "alert.number",
        ("alert.updated_at", "alert.fixed_at", "alert.dismissed_at", "alert.created_at"),
    ),
    "dependabot_alert": _Row("dependabot_alert", _ACTION, _REPOSITORY, "alert.number", ("alert.updated_at",)),
    "deployment_review": _Row("deployment_review", _ACTION, _REPOSITORY, "workflow_run.id", ("since",)),
    "discussion": _Row("discussion", _ACTION, _REPOSITORY, "discussion.number", ("discussion.updated_at",)),
    "discussion_comment": _Row("discussion_comment", _ACTION, _REPOSITORY, "comment.id", ("comment.updated_at",)),
    "merge_group": _Row("merge_group", _ACTION, _REPOSITORY, "merge_group.head_ref"),
    "package": _Row("package", _ACTION, _REPOSITORY, "package.id", ("package.updated_at",)),
    "ping": _Row("ping", (), _REPOSITORY, "hook_id", ("hook.updated_at",)),
    "projects_v2_item": _Row(
        "projects_v2_item", _ACTION, _ORGANIZATION, "projects_v2_item.id", ("projects_v2_item.updated_at",)
    ),
    "pull_request_review_thread": _Row(
        "pull_request_review_thread", _ACTION, "pull_request.url", "thread.node_id", ("pull_request.updated_at",)
    ),
    "repository_dispatch": _Row("repository_dispatch", _ACTION, _REPOSITORY, "branch"),
    "secret_scanning_alert": _Row("secret_scanning_alert", _ACTION, _REPOSITORY, "alert.number", ("alert.updated_at",)),
    "sponsorship": _Row("sponsorship", _ACTION, "sponsorship.sponsorable.url", "sponsorship.node_id"),
    "workflow_dispatch": _Row("workflow_dispatch", (), _REPOSITORY, "workflow"),
    "workflow_job": _Row(
        "workflow_job",
        _ACTION,
        _REPOSITORY,
        "workflow_job.id",
        ("workflow_job.completed_at", "workflow_job.started_at"),
    ),
    "workflow_run": _Row("workflow_run", _ACTION, _REPOSITORY, "workflow_run.id", ("workflow_run.updated_at",)),
}

# Fallbacks for a row whose own source is missing.
_SOURCES: Final = (_REPOSITORY, _ORGANIZATION, _ACCOUNT, "sender.url")


def from_webhook(
    event: str,
    body: bytes | Mapping[str, Any],
    *,
    delivery: str | None = None,
    received: datetime | str | None = None,
) -> CloudEvent:
    """The CloudEvent of one webhook.

    `event`: the value of X-GitHub-Event. `body`: the JSON body; a mapping is encoded. `delivery`: the value of
    X-GitHub-Delivery. `received`: the time of arrival, used for events without a time of their own.

    Raises CloudEventError for a body that is not a JSON object, or without any of the possible sources.
    """
    text = bytes(body) if isinstance(body, (bytes, bytearray, memoryview)) else encode_json(body)
    payload = decode_json(text)
    if not isinstance(payload, dict):
        refuse(NOT_AN_OBJECT, "data", payload, why="the body of a webhook is a JSON object")
    if not event:
        refuse(rules.MISSING, "type", header=EVENT_HEADER, why="it names the kind of webhook")
    row = _ROWS.get(event) or _Row(event, _ACTION, _REPOSITORY)
    parts = [str(part) for path in row.parts if (part := _at(payload, path))]
    subject = _at(payload, row.subject) if row.subject else None
    places = [found for place in (row.source, *_SOURCES) if isinstance(found := _at(payload, place), str) and found]
    if not places:
        refuse(rules.MISSING, "source", why=f"there is none of {', '.join(_SOURCES)} in the body")
    return CloudEvent(
        id=delivery or _hashed(event, text),
        source=places[0],
        type=TYPE_PREFIX + ".".join([row.type, *parts]),
        subject=str(subject) if isinstance(subject, (str, int)) and subject != "" else None,
        time=next((time for place in row.times if (time := _timestamp(_at(payload, place)))), received),
        datacontenttype=JSON_CONTENT_TYPE,
        data=msgspec.Raw(text),
        strict=False,  # the source is GitHub's text, and a character in it is no reason to refuse the event
    )


def from_request(headers: Mapping[str, str], body: bytes, *, received: datetime | str | None = None) -> CloudEvent:
    """The CloudEvent of a webhook as received over HTTP, with either of GitHub's two content types. The receiver has to
    verify its signature (X-Hub-Signature-256) first. Raises CloudEventError.
    """
    named = {name.lower(): value for name, value in headers.items()}
    if media_type(named.get("content-type", "")) == "application/x-www-form-urlencoded":
        try:
            form = parse_qs(body.decode("ascii"), errors="strict")
        except ValueError as error:
            refuse(rules.WRONG_TYPE, "data", body, "Content-Type", f"it is no form: {error}")
        if len(form.get("payload", ())) != 1:
            refuse(rules.MISSING, "data", body, "Content-Type", "the form has no field 'payload'")
        body = form["payload"][0].encode()
    event, delivery = named.get(EVENT_HEADER.lower(), ""), named.get(DELIVERY_HEADER.lower())
    return from_webhook(event, body, delivery=delivery, received=received)


class _Archived(msgspec.Struct):
    event: str
    payload: msgspec.Raw
    delivery: str | None = None
    received: str | None = None


_archived = msgspec.json.Decoder(_Archived)


def from_archive(line: bytes) -> CloudEvent:
    """The CloudEvent of a webhook archived as JSON: `{"event": ..., "payload": {...}}`, with optional members `delivery`
    and `received`. Raises CloudEventError.
    """
    try:
        kept = _archived.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refuse(rules.WRONG_TYPE, None, line, why=f"no archived webhook: {error}")
    return from_webhook(kept.event, bytes(kept.payload), delivery=kept.delivery, received=kept.received)


def _at(payload: Payload, place: Place) -> object:
    """The value at a place in the payload, or None when a part of the path is missing."""
    if not isinstance(place, str):
        return place(payload)
    value: object = payload
    for name in place.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _timestamp(value: object) -> str | None:
    if isinstance(value, str) and rules.is_timestamp(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**32:
        return rules.from_datetime("time", datetime.fromtimestamp(value, UTC))
    return None


def _hashed(event: str, body: bytes) -> str:
    digest = hashlib.sha256(event.encode("utf-8", "surrogatepass") + b"\0" + body)
    return f"sha256-{digest.hexdigest()[:32]}"
