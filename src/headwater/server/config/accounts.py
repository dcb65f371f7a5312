"""The blocks about accounts: `accounts` with users, exports, imports, limits; and what an operator signs: `operator`,
`resolver`, `resolver_preload`, `trusted_keys`.

An import is checked against the exports of the same file, once all accounts are read: one without an export is an
error at its place in the file. JWTs are decoded, and their signatures checked, by `authorization.operator`.
"""

import re
from pathlib import Path
from typing import Any, Literal

from headwater.errors import ConfigError
from headwater.model.nkey import NkeyKind, decode_nkey
from headwater.model.subject import is_literal, is_valid_subject
from headwater.options.access import (
    AccountOptions,
    ExportOptions,
    ImportOptions,
    JetStreamLimits,
    ResolverOptions,
)
from headwater.options.import_rules import check_imports
from headwater.server.config import fields
from headwater.server.config.document import Setting, kind
from headwater.server.config.fields import Block, Field, Reading, done, ignored, refused
from headwater.server.config.mappings import read_mappings
from headwater.server.config.permissions import read_permissions, read_users

_URL = re.compile(r'URL\(\s*"?([^\s")]+)"?\s*\)', re.IGNORECASE)
_JWT = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_RESPONSES = {
    "single": "singleton", "singleton": "singleton", "stream": "stream", "chunk": "chunked", "chunked": "chunked",
}  # fmt: skip


# ── storage limits ──

STORAGE = Block(
    "accounts.jetstream",
    (
        done("max_memory max_mem mem memory", fields.number, "bytes of streams in memory"),
        done("max_file max_store max_disk store disk", fields.number, "bytes of streams on disk"),
        done("max_streams streams", fields.number, "how many streams"),
        done("max_consumers consumers", fields.number, "how many consumers a stream"),
        done("max_ack_pending", fields.number, "of any consumer"),
        done("memory_max_stream_bytes mem_max_stream_bytes", fields.number, "bytes of one stream in memory"),
        done("store_max_stream_bytes disk_max_stream_bytes", fields.number, "bytes of one stream on disk"),
        done(
            "max_bytes_required max_stream_bytes max_bytes",
            fields.switch,
            "a stream must say how large it may grow",
        ),
        ignored("cluster_traffic", "streams live on one broker"),
    ),
)


def _storage(reading: Reading, setting: Setting) -> JetStreamLimits | None:
    return JetStreamLimits() if enabled(setting) else None


def enabled(setting: Setting) -> bool:
    """true, false, "enabled", "disabled"."""
    if isinstance(setting.value, bool):
        return setting.value
    words = {"enabled": True, "enable": True, "disabled": False, "disable": False}
    if not isinstance(setting.value, str):
        raise ValueError(f"must be a block, a boolean or a string, not {kind(setting.value)}")
    if setting.value.lower() not in words:
        raise ValueError('must be "enabled" or "disabled"')
    return words[setting.value.lower()]


def read_account_storage(reading: Reading, setting: Setting) -> JetStreamLimits | None:
    """`jetstream` of an account: whether it has streams, and how much of them."""
    if isinstance(setting.value, dict):
        return JetStreamLimits(**reading.settings(setting.value, STORAGE))
    return _storage(reading, setting)


LIMITS = Block(
    "accounts.limits",
    (
        done("max_connections max_conn", fields.small_number, "clients at a time"),
        done("max_subscriptions max_subs", fields.small_number, "of one client"),
        done("max_payload max_pay", fields.small_number, "bytes of one message"),
        done("max_leafnodes max_leafs", fields.small_number, "leaf nodes at a time", to="max_leafnodes"),
    ),
)

# ── exports and imports ──


def _subject(reading: Reading, setting: Setting) -> str:
    subject = fields.text(reading, setting)
    if not is_valid_subject(subject.encode()):
        raise ValueError(f'"{subject}" is not a valid subject')
    return subject


def _response(reading: Reading, setting: Setting) -> str:
    word = fields.text(reading, setting).lower()
    if word not in _RESPONSES:
        raise ValueError("must be singleton, stream or chunked")
    return _RESPONSES[word]


def _threshold(reading: Reading, setting: Setting) -> float:
    value = fields.time_text(reading, setting)
    if value <= 0:
        raise ValueError("must be above 0")
    return value


EXPORT = Block(
    "accounts.exports",
    (
        done("stream", _subject, "a subject whose messages others may import"),
        done("service", _subject, "a subject that others may send requests to"),
        done("accounts", fields.texts, "which others; all when absent"),
        done("response_type response", _response, "singleton (default), stream or chunked", to="response"),
        done(
            "response_threshold threshold response_max_time response_time",
            _threshold,
            'how long a service may take to reply; "2m"',
            to="response_threshold",
        ),
        ignored("latency", "how long services take is not measured"),
        done("allow_trace", fields.switch, "traces of requests go on in this account (services)"),
        done(
            "account_token_position", fields.small_number, "the token of the subject that must be the importer's name"
        ),
    ),
)

SOURCE = Block(
    "accounts.imports.stream",
    (
        done("account", fields.text, "the account that exports it"),
        done("subject", _subject, "as exported"),
    ),
)

IMPORT = Block(
    "accounts.imports",
    (
        done("stream", lambda reading, setting: reading.block(setting, SOURCE), "account and subject of a stream"),
        done("service", lambda reading, setting: reading.block(setting, SOURCE), "account and subject of a service"),
        done("to", fields.text, "the subject it has here; $1 is what the first * stands for"),
        done("prefix", fields.text, "put before the subject (streams)"),
        done("share", fields.switch, "the service is shown the client that sent a request"),
        done("allow_trace", fields.switch, "traces go on in this account (streams)"),
    ),
)


def _one_kind(found: dict[str, Any]) -> Literal["stream", "service"]:
    kinds = [kind for kind in ("stream", "service") if kind in found]
    if len(kinds) != 1:
        raise ValueError("must be either a stream or a service")
    return "stream" if kinds[0] == "stream" else "service"


def _export(reading: Reading, setting: Setting) -> ExportOptions:
    if not isinstance(setting.value, dict):
        raise ValueError(f"an export must be a block, not {kind(setting.value)}")
    found = reading.settings(setting.value, EXPORT)
    which = _one_kind(found)
    if "allow_trace" in found and which == "stream":
        raise ValueError("allow_trace is for services; the import of a stream has it")
    if "response" in found and which == "stream":
        raise ValueError("a stream has no response type")
    return ExportOptions(kind=which, subject=found.pop(which), **found)


def _import(reading: Reading, setting: Setting) -> ImportOptions:
    if not isinstance(setting.value, dict):
        raise ValueError(f"an import must be a block, not {kind(setting.value)}")
    found = reading.settings(setting.value, IMPORT)
    which = _one_kind(found)
    source = found.pop(which)
    if not (source.get("account") and source.get("subject")):
        raise ValueError("an import needs an account name and a subject")
    if "prefix" in found and (which == "service" or "to" in found):
        raise ValueError("prefix is for streams, and does not go with to")
    if "allow_trace" in found and which == "service":
        raise ValueError("allow_trace is for streams; the export of a service has it")
    if "share" in found and which == "stream":
        raise ValueError("share is for services")
    return ImportOptions(kind=which, **source, **found)


# ── accounts ──


def _trace_subject(reading: Reading, setting: Setting) -> str:
    subject = fields.text(reading, setting)
    if not (is_valid_subject(subject.encode()) and is_literal(subject.encode())):
        raise ValueError(f'"{subject}" is not a subject to publish to')
    return subject


def _sampling(reading: Reading, setting: Setting) -> int:
    value = setting.value
    if isinstance(value, str) and value.removesuffix("%").isdecimal():
        value = int(value.removesuffix("%"))
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be an integer or a percentage, not {kind(setting.value)}")
    if not 1 <= value <= 100:
        raise ValueError("must be from 1 to 100")
    return value


TRACE = Block(
    "accounts.msg_trace",
    (
        done("dest", _trace_subject, "the subject that gets the reports", to="trace_dest"),
        done(
            "sampling",
            _sampling,
            'how many of a hundred are traced; "25%", or 25; all when absent',
            to="trace_sampling",
        ),
    ),
)


def _trace(reading: Reading, setting: Setting) -> dict[str, Any]:
    if isinstance(setting.value, dict):
        return reading.settings(setting.value, TRACE)
    return {"trace_dest": _trace_subject(reading, setting)}


ACCOUNT = Block(
    "accounts",
    (
        done("users", read_users, "a list of users"),
        done("default_permissions", read_permissions, "for users without permissions of their own"),
        done("jetstream", read_account_storage, "enabled, or a block of limits"),
        done("exports", lambda reading, setting: tuple(reading.elements(setting, _export)), "a list"),
        done("imports", lambda reading, setting: tuple(reading.elements(setting, _import)), "a list"),
        done("limits", lambda reading, setting: reading.block(setting, LIMITS), "a block of limits"),
        Field(
            ("nkey",),
            "checked, and not used otherwise",
            fields.Support.IGNORED,
            "nkey",
            fields.nkey(NkeyKind.ACCOUNT, "nkey for an account"),
        ),
        done("mappings maps", read_mappings, "subjects that messages get instead of their own"),
        done("msg_trace trace_dest", _trace, "where traces by `traceparent` are reported: a subject, or a block"),
    ),
)


def read_accounts(reading: Reading, setting: Setting) -> tuple[AccountOptions, ...]:
    """`accounts`: a block by name, or just a list of names."""
    if isinstance(setting.value, list):
        return tuple(AccountOptions(name=name) for name in fields.texts(reading, setting))
    accounts = []
    for name, inner in fields.mapping(setting).items():
        if inner.used and not isinstance(inner.value, dict):
            continue  # a variable
        try:
            keywords = reading.block(inner, ACCOUNT)
            keywords.pop("nkey", None)
            trace = keywords.pop("msg_trace", {})
            accounts.append(AccountOptions(name=name, **keywords.pop("limits", {}), **trace, **keywords))
        except ConfigError as error:
            reading.error(inner.place, str(error))
        except ValueError as error:
            reading.error(inner.place, f'"{name}" {error}')
    _check_imports(reading, setting, accounts)
    return tuple(accounts)


def _check_imports(reading: Reading, setting: Setting, accounts: list[AccountOptions]) -> None:
    """Exports and imports may only name accounts that are there, and imports need an export that allows them."""
    names = {account.name for account in accounts}
    if any(account.imports for account in accounts):
        for problem in check_imports(accounts)[1]:
            reading.error(setting.place, problem.reason)
    for account in accounts:
        for export in account.exports:
            for other in export.accounts or ():
                if other not in names:
                    reading.error(setting.place, f'"{other}" account not defined for {export.kind} export')


# ── the operator ──


def find_jwt(text: str) -> str:
    """The JWT in a text: bare, or between the lines with which `nsc` decorates it; "" when there is none."""
    found = _JWT.search(text)
    return found[0] if found else ""


def read_operators(reading: Reading, setting: Setting) -> tuple[str, ...]:
    """Operator JWTs: each written here, or in a file that is named."""
    tokens = []
    for text in fields.texts(reading, setting):
        try:
            token = find_jwt(text if text.startswith("eyJ") else reading.read_file(text))
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"names {text!r}, which cannot be read") from error
        if not token:
            raise ValueError("holds no operator JWT")
        tokens.append(token)
    return tuple(tokens)


def read_pinned(reading: Reading, setting: Setting) -> tuple[str, ...]:
    """Public keys of accounts: a list, or the keys of a block, as of `resolver_preload`."""
    keys = tuple(setting.value) if isinstance(setting.value, dict) else fields.texts(reading, setting)
    for key in keys:
        if decode_nkey(key, NkeyKind.ACCOUNT) is None:
            raise ValueError(f'contains invalid public account nkey "{key}"')
    return keys


def read_trusted_keys(reading: Reading, setting: Setting) -> tuple[str, ...]:
    """Public keys of operators."""
    keys = fields.texts(reading, setting)
    for key in keys:
        if decode_nkey(key, NkeyKind.OPERATOR) is None:
            raise ValueError(f'contains invalid public operator nkey "{key}"')
    return keys


def read_sentinel(reading: Reading, setting: Setting) -> str:
    """A user's JWT, written here or in a file that is named."""
    text = fields.text(reading, setting)
    try:
        token = find_jwt(text if text.startswith("eyJ") else reading.read_file(text))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"names {text!r}, which cannot be read") from error
    if not token:
        raise ValueError("holds no user JWT")
    return token


def read_resolver(reading: Reading, setting: Setting) -> ResolverOptions:
    """MEMORY, URL(…), or a block with a type."""
    if isinstance(setting.value, dict):
        found = reading.block(setting, RESOLVER)
        if found.get("kind") == "memory":
            return ResolverOptions()
        return ResolverOptions(**found)
    word = fields.text(reading, setting).strip()
    if word.upper() in ("MEM", "MEMORY"):
        return ResolverOptions()
    url = _URL.fullmatch(word)
    if url is None:
        raise ValueError("must be MEMORY, URL(…), or a block with a type of full or cache")
    return ResolverOptions(kind="url", url=url[1] if url[1].endswith("/") else url[1] + "/")


def _resolver_kind(reading: Reading, setting: Setting) -> str:
    word = fields.text(reading, setting).strip().lower()
    if word not in ("full", "cache", "mem", "memory"):
        raise ValueError("must be full, cache or memory")
    return "memory" if word == "mem" else word


RESOLVER = Block(
    "resolver",
    (
        done("type", _resolver_kind, "full, cache or memory", to="kind"),
        done("dir", fields.text, "the directory with a JWT for each account", to="directory"),
        done("allow_delete", fields.switch, "operators may delete accounts (full)"),
        done("hard_delete", fields.switch, "their files are removed; renamed otherwise"),
        done("limit", fields.number, "how many accounts are kept; any number"),
        done(
            "interval", fields.time_text, 'between two comparisons with the directories of other servers (full); "1m"'
        ),
        done("timeout", fields.time_text, 'for the answers of other servers; "1.9s"'),
        ignored("ttl", "an account that was found stays known"),
    ),
)


RESOLVER_TLS = Block(
    "resolver_tls",
    (
        done("ca_file", lambda reading, setting: Path(reading.file(setting)), "whose certificates are taken"),
        done("cert_file", lambda reading, setting: Path(reading.file(setting)), "our certificate, PEM"),
        done("key_file", lambda reading, setting: Path(reading.file(setting)), "its private key, PEM"),
        done("insecure", fields.switch, "the certificate of the URL's server is not checked"),
        ignored("verify", "it is always checked, but for insecure"),
        ignored("timeout", "that of the resolver holds"),
        ignored("curve_preferences", "OpenSSL chooses the curve"),
        refused("cipher_suites min_version", "OpenSSL chooses, of TLS 1.2 and newer"),
    ),
)


def read_resolver_tls(reading: Reading, setting: Setting) -> dict[str, Any]:
    """How the resolver's URL is read: fields of ResolverOptions."""
    return reading.block(setting, RESOLVER_TLS)


def read_preload(reading: Reading, setting: Setting) -> dict[str, str]:
    """Account JWTs by the account's public key."""
    preload: dict[str, str] = {}
    for key, inner in fields.mapping(setting).items():
        if not isinstance(inner.value, str) or not _JWT.fullmatch(inner.value):
            reading.error(inner.place, "invalid account JWT")
            continue
        preload[key] = inner.value
    return preload
