"""The flags of `headwater serve`: those of nats-server, and some of our own. A flag overrides the configuration file.

FLAGS is the table from which the help text and the documentation are made. `apply` turns the given flags into changes of
the draft configuration, which comes from the file or is empty.
"""

from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigError
from headwater.net.address import url_address
from headwater.server.config.draft import Draft
from headwater.serving.go_flags import Flag, Kind, Value, parse

if TYPE_CHECKING:
    from pathlib import Path


def _text(names: str, to: str, value: str, meaning: str) -> Flag:
    return Flag(tuple(names.split()), to, Kind.TEXT, meaning, value)


def _number(names: str, to: str, value: str, meaning: str) -> Flag:
    return Flag(tuple(names.split()), to, Kind.NUMBER, meaning, value)


def _switch(names: str, to: str, meaning: str) -> Flag:
    return Flag(tuple(names.split()), to, Kind.SWITCH, meaning)


GROUPS: dict[str, tuple[Flag, ...]] = {
    "Server": (
        _text("a addr net", "host", "host", "bind to this address (0.0.0.0)"),
        _number("p port", "port", "port", "port for clients (4222); -1 takes any free one"),
        _text("n name server_name", "server_name", "name", "server name (the server id)"),
        _text("P pid", "pid_file", "file", "file that gets the process id"),
        _number("m http_port", "http_port", "port", "port for monitoring over HTTP"),
        _number("ms https_port", "https_port", "port", "port for monitoring over HTTPS"),
        _text("c config", "config", "file", "configuration file"),
        _switch("t", "test", "check the configuration file and exit"),
        _text("sl signal", "signal", "signal[=pid]", "send ldm, stop, quit, term, reopen or reload to a running server"),
        _text("client_advertise", "client_advertise", "host:port", "the address announced to clients"),
        _text("ports_file_dir", "ports_file_dir", "dir", "directory that gets a file with the ports"),
        _number("workers", "workers", "number", "processes that share the port for clients (1); not in nats-server"),
        _switch("spread_streams", "spread_streams", "with --workers: streams on every worker; not in nats-server"),
        _number("max_payload", "max_payload", "bytes", "bytes of one message (1048576); not in nats-server"),
    ),
    "Logging": (
        _text("l log", "log_file", "file", "log to this file instead of stderr"),
        _switch("T logtime", "logtime", "log lines have a time (true)"),
        _switch("logtime_utc", "logtime_utc", "in UTC"),
        _switch("s syslog", "syslog", "refused: log to stderr or to a file"),
        _text("r remote_syslog", "remote_syslog", "address", "refused: log to stderr or to a file"),
        _switch("D debug", "debug", "log what happens to single clients"),
        _switch("V trace", "trace", "log every op of every client, without credentials"),
        _switch("VV", "trace_verbose", "and of the clients of the system account"),
        _switch("DV", "debug_trace", "-D and -V"),
        _switch("DVV", "debug_trace_verbose", "-D and -VV"),
        _number("log_size_limit", "log_size_limit", "bytes", "begin a new log file at this size"),
        _number("max_traced_msg_len max-traced-msg-len", "max_traced", "bytes", "bytes of a payload in the trace; all"),
    ),
    "JetStream": (
        _switch("js jetstream", "jetstream", "streams, and the API for them"),
        _text("sd store_dir", "store_dir", "dir", "directory of the streams (headwater-data)"),
        _text("sync", "sync", "policy", "always, interval or never: when a stream is made durable; not in nats-server"),
    ),
    "Iggy": (
        _text("iggy", "iggy", "host:port", "Iggy clients of every generation; not in nats-server, nor the next"),
        _text("iggy-http iggy_http", "iggy_http", "host:port", "Iggy's HTTP JSON interface"),
        _text("iggy-quic iggy_quic", "iggy_quic", "host:port", "Iggy over QUIC"),
        _text("iggy-websocket iggy_websocket", "iggy_websocket", "host:port", "Iggy over WebSocket"),
        _text("iggy-seed iggy_seed", "iggy_seed", "host:port", "Iggy clients of crate 0.0.30, which know no login"),
        _text("iggy-seed-http iggy_seed_http", "iggy_seed_http", "host:port", "the HTTP interface of that time, no login"),
        _number("iggy-unique-ids iggy_unique_ids", "iggy_unique_ids", "seconds", "how long a message id is stored once (0)"),
        _switch("iggy-verify iggy_verify", "iggy_verify", "check the checksum of every message that Iggy clients send"),
    ),
    "Authorization": (
        _text("user", "user", "user", "user that clients need"),
        _text("pass", "password", "password", "and the password"),
        _text("auth", "token", "token", "token that clients need"),
    ),
    "TLS": (
        _switch("tls", "tls", "clients use TLS"),
        _text("tlscert", "tls_cert", "file", "certificate, PEM"),
        _text("tlskey", "tls_key", "file", "its private key, PEM"),
        _switch("tlsverify", "tls_verify", "and clients need a certificate"),
        _text("tlscacert", "tls_ca", "file", "that this authority has signed"),
    ),
    "Cluster": (
        _text("routes", "routes", "url, url", "other servers to connect to"),
        _text("cluster cluster_listen", "cluster", "url", "where other servers connect to"),
        _text("cluster_name", "cluster_name", "name", "of the cluster"),
        _switch("no_advertise", "no_advertise", "the other servers are not announced to clients"),
        _text("cluster_advertise", "cluster_advertise", "host:port", "the address announced to other servers"),
        _number("connect_retries", "connect_retries", "number", "for routes that were learnt"),
    ),
    "Common": (
        _switch("h help", "help", "this text"),
        _switch("v version", "version", "the version"),
        _switch("help_tls", "help_tls", "what a tls block holds"),
        _number("profile", "profile", "port", "changes nothing: there is no Go profiler"),
    ),
}  # fmt: skip
FLAGS = tuple(flag for group in GROUPS.values() for flag in group)

_DIRECT = {"host": "host", "port": "port", "server_name": "server_name", "client_advertise": "client_advertise",
           "max_payload": "max_payload", "jetstream": "jetstream", "sync": "sync"}  # fmt: skip


def read(arguments: list[str]) -> dict[str, Value]:
    """The given flags, by the setting that each changes. Raises ConfigError."""
    values, rest = parse(arguments, FLAGS)
    for word in rest:
        if word.lower() not in ("version", "help"):
            raise ConfigError(f"unknown argument: {word}", value=word)
        values[word.lower()] = True
    return values


def usage() -> str:
    """The help text."""
    lines = ["Usage: headwater serve [options]", ""]
    for title, flags in GROUPS.items():
        lines.append(f"{title} options:")
        for flag in flags:
            spelled = ", ".join(f"{'-' if len(name) < 3 else '--'}{name}" for name in flag.names)
            left = f"{spelled} <{flag.value}>" if flag.value else spelled
            lines.append(f"    {left:<36} {flag.meaning}")
        lines.append("")
    return "\n".join(lines)


def apply(values: dict[str, Value], draft: Draft) -> None:
    """Apply the flags to the draft. Raises ConfigError for invalid values."""
    if values.get("syslog") or values.get("remote_syslog"):
        raise ConfigError("there is no syslog here", hint="log to stderr, or to a file with --log")
    for name, option in _DIRECT.items():
        if name in values:
            draft.broker[option] = values[name]
    if "store_dir" in values:
        draft.broker["store_dir"] = str(values["store_dir"])
    for name, keyword in (("http_port", "port"), ("https_port", "tls_port")):
        if name in values:
            draft.monitoring[keyword] = values[name]
    for name in ("pid_file", "ports_file_dir"):
        if values.get(name):
            draft.files[name] = _path(values[name])
    _apply_logging(values, draft)
    _apply_authorization(values, draft)
    _apply_tls(values, draft)
    _apply_cluster(values, draft)
    if not draft.broker.get("jetstream") and not any(name.startswith("iggy") for name in values):
        for name in ("store_dir", "sync"):
            if name in values:
                draft.warnings.append(f"--{name} changes nothing without --jetstream: this server keeps no streams")
    if values.get("profile"):
        draft.warnings.append("--profile changes nothing here: there is no Go profiler")


def _path(value: Value) -> "Path":
    from pathlib import Path  # imported here, because a start with just a port does not need it

    return Path(str(value))


def _apply_logging(values: dict[str, Value], draft: Draft) -> None:
    log = draft.logging
    for name, keyword in (
        ("logtime", "time"), ("logtime_utc", "utc"), ("log_size_limit", "size_limit"), ("max_traced", "max_traced"),
    ):  # fmt: skip
        if name in values:
            log[keyword] = values[name]
    if values.get("log_file"):
        log["file"] = _path(values["log_file"])
    for name in ("debug", "debug_trace", "debug_trace_verbose"):
        if name in values:
            log["debug"] = values[name]
    for name in ("trace", "trace_verbose", "debug_trace", "debug_trace_verbose"):
        if name in values:
            log["trace"] = values[name]
    for name in ("trace_verbose", "debug_trace_verbose"):
        if name in values:
            log["trace_system"] = values[name]


def _apply_authorization(values: dict[str, Value], draft: Draft) -> None:
    user, password, token = (str(values.get(name, "")) for name in ("user", "password", "token"))
    if not (user or password or token):
        return
    from headwater.options.access import AuthorizationOptions

    if password and not user:
        before = draft.broker.get("authorization")
        user = before.username if before is not None else ""
    draft.broker["authorization"] = AuthorizationOptions(username=user, password=password, token=token)


def _apply_tls(values: dict[str, Value], draft: Draft) -> None:
    if values.get("tls") is False:
        draft.broker.pop("tls", None)
        return
    if not any(values.get(name) for name in ("tls", "tls_cert", "tls_key", "tls_verify", "tls_ca")):
        return
    from headwater.net.listener_options import TlsOptions

    if not values.get("tls_cert"):
        raise ConfigError("TLS Server certificate must be present and valid", hint="--tlscert names the file")
    if not values.get("tls_key"):
        raise ConfigError("TLS Server private key must be present and valid", hint="--tlskey names the file")
    authority = str(values.get("tls_ca", ""))
    draft.broker["tls"] = TlsOptions(
        cert_file=_path(values["tls_cert"]),
        key_file=_path(values["tls_key"]),
        ca_file=_path(authority) if authority else None,
        verify=bool(values.get("tls_verify", False)),
    )


def _apply_cluster(values: dict[str, Value], draft: Draft) -> None:
    cluster = draft.cluster
    for name, keyword in (("cluster_name", "name"), ("cluster_advertise", "advertise")):
        if values.get(name):
            cluster[keyword] = values[name]
    if "connect_retries" in values:
        cluster["connect_retries"] = values["connect_retries"]
    if "no_advertise" in values:
        cluster["no_advertise"] = draft.broker["no_advertise"] = values["no_advertise"]
    if "routes" in values:
        cluster["routes"] = tuple(url.strip() for url in str(values["routes"]).split(",") if url.strip())
    if "cluster" in values:
        cluster |= _cluster_url(str(values["cluster"]))


def _cluster_url(url: str) -> dict[str, Any]:
    if not url:
        return {"port": 0}
    any_port = url.endswith(":-1")
    try:
        place = url_address(url.removesuffix(":-1") + ":0" if any_port else url)
    except ValueError:
        place = None
    if place is None or "//" not in url or not place.host or place.port is None:
        raise ConfigError("--cluster takes a URL: nats://host:port", hint="port -1 takes any free one")
    if place.user and place.password is None:
        raise ConfigError("expected cluster password to be set")
    return {
        "host": place.host,
        "port": -1 if any_port else place.port,
        "username": place.user,
        "password": place.password or "",
    }
