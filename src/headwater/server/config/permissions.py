"""What users may do: permissions, and the users who have them; `authorization`, and the callout in it.

A user has a name and a password or an nkey, never both. Subjects are checked here, and a queue group behind a subject
is allowed for subscriptions only.
"""

from headwater.model.nkey import NkeyKind
from headwater.model.subject import is_valid_subject
from headwater.options.access import AuthCalloutOptions, Permissions, ResponseRules, SubjectRules, UserOptions
from headwater.server.config import fields
from headwater.server.config.document import Setting, kind
from headwater.server.config.fields import Block, Reading, done, refused

CONNECTION_TYPES = {"STANDARD", "WEBSOCKET", "LEAFNODE", "LEAFNODE_WS", "MQTT", "MQTT_WS", "IN_PROCESS"}


# ── permissions ──


def _subject(value: str, queues: bool) -> None:
    words = value.split()
    if is_valid_subject(value.encode()) and len(words) == 1:
        return
    if not (queues and len(words) == 2 and all(is_valid_subject(word.encode()) for word in words)):
        raise ValueError(f'subject "{value}" is not a valid subject')


def _subjects(reading: Reading, setting: Setting, queues: bool) -> tuple[str, ...]:
    subjects = fields.texts(reading, setting)
    for subject in subjects:
        _subject(subject, queues)
    return subjects


def _rules(reading: Reading, setting: Setting, queues: bool) -> SubjectRules | None:
    if not isinstance(setting.value, dict):
        return SubjectRules(allow=_subjects(reading, setting, queues))
    found = reading.settings(setting.value, SUBSCRIBE if queues else PUBLISH)
    return SubjectRules(**found) if found else None


PUBLISH = Block(
    "permissions.publish",
    (
        done("allow", lambda reading, setting: _subjects(reading, setting, False), "subjects that may be used"),
        done("deny", lambda reading, setting: _subjects(reading, setting, False), "less these"),
    ),
)
SUBSCRIBE = Block(
    "permissions.subscribe",
    (
        done("allow", lambda reading, setting: _subjects(reading, setting, True), 'subjects, or "subject queue"'),
        done("deny", lambda reading, setting: _subjects(reading, setting, True), "less these"),
    ),
)
ALLOW_RESPONSES = Block(
    "permissions.allow_responses",
    (
        done("max max_msgs max_messages max_responses", fields.number, "answers to one message; 1", to="max_messages"),
        done("expires expiration ttl", fields.time_text, 'for how long; "2m"'),
    ),
)


def _responses(reading: Reading, setting: Setting) -> ResponseRules | None:
    if isinstance(setting.value, bool):
        return ResponseRules() if setting.value else None
    if not isinstance(setting.value, dict):
        raise ValueError(f"must be true, false or a block, not {kind(setting.value)}")
    found = reading.settings(setting.value, ALLOW_RESPONSES)
    return ResponseRules(**{keyword: value for keyword, value in found.items() if value != 0})


PERMISSIONS = Block(
    "permissions",
    (
        done(
            "publish pub import",
            lambda reading, setting: _rules(reading, setting, False),
            "a subject, a list, or a block of allow and deny",
        ),
        done(
            "subscribe sub export",
            lambda reading, setting: _rules(reading, setting, True),
            "the same; entries may name a queue group",
        ),
        done(
            "allow_responses publish_allow_responses",
            _responses,
            "may answer on reply subjects: true, or a block",
            to="responses",
        ),
    ),
)


def read_permissions(reading: Reading, setting: Setting) -> Permissions:
    """A `permissions` block."""
    return Permissions(**reading.block(setting, PERMISSIONS))


# ── users ──


def _connection_types(reading: Reading, setting: Setting) -> frozenset[str]:
    names = frozenset(name.upper() for name in fields.texts(reading, setting))
    unknown = sorted(names - CONNECTION_TYPES)
    if unknown:
        raise ValueError(f"has an invalid connection type {unknown[0]}")
    return names


USER = Block(
    "users",
    (
        done("user username", fields.text, "the name", to="username"),
        done("password pass", fields.text, 'plain, or bcrypt ("$2a$…")'),
        done("nkey", fields.nkey(NkeyKind.USER, "nkey for a user"), "public key, instead of a name and a password"),
        done("permissions permission authorization", read_permissions, "a permissions block"),
        done(
            "allowed_connection_types connection_types clients",
            _connection_types,
            "STANDARD, WEBSOCKET; any when absent",
            to="connection_types",
        ),
        refused("proxy_required", "there is no proxy protocol"),
    ),
)


def read_users(reading: Reading, setting: Setting) -> tuple[UserOptions, ...]:
    """A list of users."""
    return tuple(reading.elements(setting, _user))


def _user(reading: Reading, setting: Setting) -> UserOptions:
    if not isinstance(setting.value, dict):
        raise ValueError(f"a user must be a block, not {kind(setting.value)}")
    wrong = len(reading.errors)
    found = reading.settings(setting.value, USER)
    if not found.get("username") and not found.get("nkey"):
        if len(reading.errors) > wrong:
            return UserOptions(username="?")  # its error has been reported already
        raise ValueError("a user needs a user or an nkey")
    if found.get("nkey") and (found.get("username") or found.get("password")):
        raise ValueError("nkey users do not take usernames or passwords")
    return UserOptions(**found)


AUTH_CALLOUT = Block(
    "authorization.auth_callout",
    (
        done(
            "issuer",
            fields.nkey(NkeyKind.ACCOUNT, "account nkey"),
            "the account nkey that signs the service's answers",
        ),
        done("account acc", fields.text, "where the service is; the global account"),
        done("auth_users users", fields.texts, "who logs in as the configuration says; the service does"),
        done("xkey key", fields.nkey(NkeyKind.CURVE, "xkey"), "the service's curve nkey: requests are encrypted"),
        done("allowed_accounts", fields.texts, "users of other accounts are not shown to the service; of none"),
    ),
)


def _callout(reading: Reading, setting: Setting) -> AuthCalloutOptions | None:
    wrong = len(reading.errors)
    found = reading.block(setting, AUTH_CALLOUT)
    if len(reading.errors) > wrong:
        return None  # its error has been reported already
    if "issuer" not in found:
        raise ValueError("needs an issuer")
    return AuthCalloutOptions(**{"auth_users": (), **found})


AUTHORIZATION = Block(
    "authorization",
    (
        done("user username", fields.text, "the one user", to="username"),
        done("password pass", fields.text, 'plain, or bcrypt ("$2a$…")'),
        done("token", fields.text, "plain, or bcrypt"),
        done("users", read_users, "a list of users"),
        done("timeout", fields.amount_of_seconds, "until a client must have authenticated; 2 seconds"),
        done(
            "default_permissions default_permission permissions",
            read_permissions,
            "for users without permissions of their own",
        ),
        done(
            "auth_callout auth_hook",
            _callout,
            "a service that decides who a client is",
            to="callout",
        ),
        refused("proxy_required", "there is no proxy protocol"),
    ),
)
