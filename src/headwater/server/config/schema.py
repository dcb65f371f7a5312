"""The top of a configuration file: every field nats-server knows, and which of our options it sets.

`load` is the way in. The blocks inside have modules of their own: transport.py (tls, websocket, cluster), accounts.py,
leafnodes.py, permissions.py. What goes where:

    BrokerOptions       most fields, by the name of the option
    LoggingOptions      log_file, debug, trace, logtime, …
    MonitoringOptions   http, https, monitor_port, …
    ClusterOptions      cluster
    OperatorOptions     operator, resolver, resolver_preload, trusted_keys
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwater.errors import ConfigError, open_failure
from headwater.model.stream_limits import ServerLimits
from headwater.model.timestamps import SECOND
from headwater.options.access import AuthorizationOptions, JetStreamLimits, OperatorOptions, ResolverOptions
from headwater.server.config import fields
from headwater.server.config.accounts import (
    ACCOUNT,
    EXPORT,
    IMPORT,
    LIMITS,
    RESOLVER,
    RESOLVER_TLS,
    SOURCE,
    STORAGE,
    enabled,
    read_accounts,
    read_operators,
    read_pinned,
    read_preload,
    read_resolver,
    read_resolver_tls,
    read_sentinel,
    read_trusted_keys,
)
from headwater.server.config.connection_limits import CONNECTION_LIMITS, read_connection_limits
from headwater.server.config.document import Place, Setting, config_error
from headwater.server.config.draft import Draft, ServerConfig
from headwater.server.config.fields import Block, Reading, done, ignored, refused
from headwater.server.config.leafnodes import (
    LEAF_AUTHORIZATION,
    LEAF_USER,
    LEAFNODES,
    REMOTE,
    REMOTE_TLS,
    read_leafnodes,
)
from headwater.server.config.mappings import DESTINATION, read_mappings
from headwater.server.config.parser import ReadFile, parse
from headwater.server.config.permissions import (
    ALLOW_RESPONSES,
    AUTH_CALLOUT,
    AUTHORIZATION,
    PERMISSIONS,
    PUBLISH,
    SUBSCRIBE,
    USER,
)
from headwater.server.config.transport import (
    CLUSTER,
    CLUSTER_AUTHORIZATION,
    TLS,
    WEBSOCKET,
    WEBSOCKET_AUTHORIZATION,
    read_cluster,
    read_tls,
    read_websocket,
    spread_address,
)

SHORTEST_LAME_DUCK = 30.0  # seconds
DEFAULT_MAX_CONSUMERS = 1000
OUR_SYNC_INTERVAL = 1.0  # seconds; that of streams with sync = interval


def _path(reading: Reading, setting: Setting) -> Path:
    return Path(fields.text(reading, setting))


def _lame_duck(reading: Reading, setting: Setting) -> float:
    value = fields.time_text(reading, setting)
    if value < SHORTEST_LAME_DUCK:
        raise ValueError(f"of {value:g} s is invalid: the minimum is 30 seconds")
    return value


def _grace(reading: Reading, setting: Setting) -> float:
    value = fields.time_text(reading, setting)
    if value < 0:
        raise ValueError("needs to be positive")
    return value


def _subject_tokens(reading: Reading, setting: Setting) -> int:
    value = fields.number(reading, setting)
    if not 0 < value <= 255:
        raise ValueError("must be from 1 to 255")
    return value


def _sync(reading: Reading, setting: Setting) -> str:
    if setting.value == "always":
        return "always"
    value = fields.seconds(reading, setting)
    if value < OUR_SYNC_INTERVAL:
        reading.warn(setting.place, f"an interval is never shorter than {OUR_SYNC_INTERVAL:g} s here; always is safe")
    return "interval"


BATCH_LIMITS = Block(
    "jetstream limits batch",
    (
        done("max_msgs", fields.number, "messages of one", to="batch_messages"),
        done("max_inflight_per_stream", fields.number, "open at a time in a stream", to="batches_of_stream"),
        done("max_inflight_total", fields.number, "open at a time in an account", to="batches_of_account"),
        done("timeout", fields.seconds, "without a message; then it is given up", to="batch_timeout"),
    ),
)

JETSTREAM_LIMITS = Block(
    "jetstream limits",
    (
        done("default_max_consumers", fields.number, "of a stream; 1000, -1 for no limit"),
        done("max_ack_pending", fields.number, "of any consumer"),
        done("max_request_batch", fields.number, "largest batch of a pull request"),
        done("duplicate_window", fields.seconds, "longest of any stream, and the default of those that name none"),
        ignored("max_ha_assets", "streams live on one broker"),
        done("batch", lambda reading, setting: reading.block(setting, BATCH_LIMITS), "atomic batches"),
    ),
)


def _stream_limits(reading: Reading, setting: Setting) -> dict[str, Any]:
    """Keywords of BrokerOptions. 0 leaves a default as it is, as in nats-server."""
    found = reading.block(setting, JETSTREAM_LIMITS)
    most = found.pop("default_max_consumers", 0) or DEFAULT_MAX_CONSUMERS
    named = {**found, **found.pop("batch", {})}
    named.pop("batch", None)
    spans = {"duplicate_window", "batch_timeout"}
    limits = {name: int(value * SECOND) if name in spans else value for name, value in named.items() if value > 0}
    return {"default_max_consumers": most, "stream_limits": ServerLimits(**limits)}


JETSTREAM = Block(
    "jetstream",
    (
        done("store_dir store storedir", _path, "directory of the streams"),
        done("sync_interval sync", _sync, "always (default here), or a duration: then about once a second", to="sync"),
        done("max_memory_store max_mem_store max_mem", fields.storage_size, "bytes of streams in memory", "max_memory"),
        done("max_file_store max_file", fields.storage_size, "bytes of streams on disk", "max_file"),
        done("domain", fields.text, "JetStream domain; of the cluster's streams, where `enabled` is false"),
        done("enabled enable", fields.switch, "false switches it off", to="enabled"),
        ignored("strict", "requests are always read strictly"),
        done("limits", _stream_limits, "limits and defaults of streams and consumers", to="stream_limits"),
        ignored("unique_tag", "streams live on one broker"),
        ignored("max_outstanding_catchup", "streams live on one broker"),
        ignored("max_buffered_size max_buffered_msgs", "publishers are held back instead"),
        ignored("request_queue_limit info_queue_limit", "requests are served in their order"),
        ignored("meta_compact meta_compact_size meta_compact_sync", "there is no meta group"),
        ignored("max_concurrent_io", "four threads write"),
        ignored("extension_hint", "it is a note to an operator"),
        refused("key ek encryption_key prev_key prev_ek prev_encryption_key cipher tpm", "streams are not encrypted"),
    ),
)


def _jetstream(reading: Reading, setting: Setting) -> dict[str, Any]:
    """Keywords of BrokerOptions."""
    if not isinstance(setting.value, dict):
        return {"jetstream": enabled(setting)}
    found = reading.settings(setting.value, JETSTREAM)
    limits = {name: found.pop(name) for name in ("max_memory", "max_file") if name in found}
    keywords = {"jetstream": found.pop("enabled", True), **found.pop("stream_limits", {}), **found}
    if "domain" in keywords:
        keywords["jetstream_domain"] = keywords.pop("domain")
    if limits:
        keywords["jetstream_limits"] = JetStreamLimits(**limits)
    return keywords


def _scoped_acks(reading: Reading, setting: Setting) -> bool:
    """The one flag that changes something here; others are logged and are no error, as in nats-server."""
    scoped = False
    for name, flag in fields.mapping(setting).items():
        if name == "js_ack_fc_v2":
            scoped = fields.switch(reading, flag)
        elif flag.value is not False:
            reading.warn(flag.place, f"feature flag {name} changes nothing here")
    return scoped


def _authorization(reading: Reading, setting: Setting) -> dict[str, Any]:
    """Keywords of BrokerOptions."""
    found = reading.block(setting, AUTHORIZATION)
    keywords: dict[str, Any] = {}
    if "timeout" in found:
        keywords["auth_timeout"] = found.pop("timeout")
    keywords["authorization"] = AuthorizationOptions(**found)
    return keywords


TOP = Block(
    "",
    (
        done("listen", fields.address, "host:port for clients, or a port"),
        done("host net", fields.text, "for clients; 0.0.0.0 by default"),
        done("port", fields.port, "for clients; 4222 by default, -1 for any free one"),
        done("server_name", fields.name, "without spaces; the server id by default"),
        done("client_advertise", fields.text, "host:port in INFO for clients, instead of our own"),
        done("authorization", _authorization, "users, tokens and their permissions"),
        done("accounts", read_accounts, "isolated subject spaces"),
        done("mappings maps", read_mappings, "subjects that messages get instead of their own"),
        done("no_auth_user", fields.text, "the user of clients without credentials"),
        done("system_account system", fields.text, "account that gets the server's events"),
        ignored("no_system_account no_system no_sys_acc", "the system account costs nothing without clients"),
        done("operator operators roots root root_operators root_operator", read_operators, "a JWT or a file with one"),
        done("resolver account_resolver accounts_resolver", read_resolver, "MEMORY, URL(…), or a block"),
        done("resolver_preload", read_preload, "account JWTs by public key"),
        done("trusted_keys trusted", read_trusted_keys, "public keys of operators"),
        done("tls", read_tls, "certificates for clients"),
        done("allow_non_tls", fields.switch, "clients may come without TLS"),
        done("websocket ws", read_websocket, "clients over WebSocket"),
        done("cluster", read_cluster, "other brokers"),
        done("leafnodes leaf", read_leafnodes, "spokes that are accepted, and hubs that are dialled"),
        done("jetstream", _jetstream, "enabled, or a block"),
        done("store_dir storedir", _path, "directory of the streams"),
        done("http", fields.address, "port, or host:port, of monitoring"),
        done("https", fields.address, "the same with TLS"),
        done("http_port monitor_port", fields.port, "port of monitoring"),
        done("https_port", fields.port, "the same with TLS"),
        done("http_base_path", fields.text, "what stands before /varz and the rest"),
        done("metrics_prefix", fields.text, "what the names under /metrics begin with; ours alone"),
        done("max_payload", fields.small_number, "bytes of one message; 1 MiB"),
        done("max_control_line", fields.small_number, "bytes of one line; 4096"),
        done(
            "connection_limits",
            read_connection_limits,
            "of connections without a login yet, by listener; not in nats-server",
        ),
        done("max_connections max_conn", fields.number, "clients at a time; 65,536, -1 for no limit"),
        done("max_subscriptions max_subs", fields.number, "of one client; no limit"),
        done("max_subscription_tokens max_sub_tokens", _subject_tokens, "of one subject; no limit"),
        done("max_pending", fields.number, "bytes that may wait for one client; 64 MiB"),
        done("write_deadline", fields.seconds, 'a client that takes nothing for so long is closed; "10s"'),
        done("ping_interval", fields.seconds, '"2m"'),
        done("ping_max", fields.number, "unanswered pings after which a client is stale; 2"),
        done("no_header_support", fields.switch, "INFO offers no headers"),
        done(
            "no_read_pauses",
            fields.switch,
            "never wait 0.1 ms so that a read finds more, as under floods of small writes; not in nats-server",
        ),
        done("lame_duck_duration", _lame_duck, 'over which clients are sent away; "2m", at least "30s"'),
        done("lame_duck_grace_period", _grace, 'before the first is; "10s"'),
        done("debug", fields.switch, "log what happens to single clients"),
        done("trace", fields.switch, "log every op of every client, without credentials"),
        done("trace_verbose", fields.switch, "as trace, and the clients of the system account too", to="trace_system"),
        ignored("trace_headers", "headers are not picked out of what is traced"),
        done("logtime", fields.switch, "log lines have a time; true"),
        done("logtime_utc", fields.switch, "in UTC"),
        done("log_file logfile", _path, "instead of stderr"),
        done("log_size_limit logfile_size_limit", fields.number, "bytes after which the file is renamed"),
        done("log_max_num logfile_max_num", fields.number, "how many renamed ones are kept"),
        done("pid_file pidfile", _path, "file that gets the process id"),
        done("ports_file_dir", _path, "directory that gets a file with the ports"),
        ignored("prof_port prof_block_rate", "there is no Go profiler"),
        ignored("connect_error_reports reconnect_error_reports", "every failed attempt is logged"),
        ignored("disable_sublist_cache no_sublist_cache", "the cache is bounded"),
        ignored(
            "no_fast_producer_stall", "publishers are held back for milliseconds, and not for a receiver that is stuck"
        ),
        done("max_traced_msg_len", fields.number, "bytes of a payload in the trace; all", to="max_traced"),
        ignored("max_closed_clients", "the last 10,000 are kept"),
        ignored("write_timeout", "a client that takes nothing within write_deadline is closed"),
        done("feature_flags", _scoped_acks, "js_ack_fc_v2: ack subjects name domain and account", to="scoped_acks"),
        ignored("server_tags server_metadata", "they are used for the placement of streams only"),
        done(
            "default_js_domain",
            lambda reading, setting: fields.strings(reading, setting),
            "by account without streams here: the domain that $JS.API means",
        ),
        ignored("ocsp_cache", "certificates are not checked by OCSP"),
        refused("gateway", "there are no superclusters"),
        refused("mqtt", "there is no MQTT"),
        refused("ocsp", "certificates are not checked by OCSP"),
        refused("proxies proxy_protocol", "there is no proxy protocol"),
        done("default_sentinel", read_sentinel, "the user JWT, or a file with one, of clients that show none"),
        done("resolver_pinned_accounts", read_pinned, "only users of these accounts may connect"),
        done("resolver_tls", read_resolver_tls, "how the https of a resolver URL(…) is checked"),
        refused("syslog remote_syslog", "write to stderr, or to a log_file"),
    ),
)

BLOCKS = (
    TOP, RESOLVER, RESOLVER_TLS, AUTHORIZATION, AUTH_CALLOUT, USER, PERMISSIONS, PUBLISH, SUBSCRIBE, ALLOW_RESPONSES,
    ACCOUNT, STORAGE, LIMITS, EXPORT, IMPORT, SOURCE, DESTINATION, TLS, WEBSOCKET, WEBSOCKET_AUTHORIZATION, CLUSTER,
    CLUSTER_AUTHORIZATION, LEAFNODES, LEAF_AUTHORIZATION, LEAF_USER, REMOTE, REMOTE_TLS, JETSTREAM, JETSTREAM_LIMITS,
    BATCH_LIMITS, CONNECTION_LIMITS,
)  # fmt: skip
"""All of them, for the documentation."""

_LOGGING = {
    "debug": "debug", "trace": "trace", "trace_system": "trace_system", "max_traced": "max_traced",
    "logtime": "time", "logtime_utc": "utc", "log_file": "file",
    "log_size_limit": "size_limit", "log_max_num": "max_files",
}  # fmt: skip


def read_config(path: str | Path, environment: Mapping[str, str] = os.environ) -> ServerConfig:
    """For programs: a configuration file as options, `broker` for `Broker(options=...)`. Raises ConfigError with everything
    that is wrong. `environment` has the file's variables."""
    return load(str(path), lambda name: Path(name).read_bytes().decode("utf-8"), environment).finish()


def load(path: str, read_file: ReadFile, environment: Mapping[str, str]) -> Draft:
    """Read a configuration file. Raises ConfigError with everything that is wrong, one `file:line:column: …` a line."""
    try:
        text = read_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(open_failure(path, error), value=path) from error
    document = parse(text, path, read_file, environment)
    reading = Reading(read_file)
    found = reading.settings(document.settings, TOP)
    if not document.settings:
        reading.warn(Place(path, 1, 1), "config has no values or is empty")
    draft = _sort(found, reading, path)
    draft.settings = document.settings
    if reading.errors:
        raise config_error(reading.errors)
    draft.digest = document.digest()
    draft.warnings += [str(remark) for remark in (*document.warnings, *reading.warnings)]
    return draft


def _sort(found: dict[str, Any], reading: Reading, path: str) -> Draft:
    """The values of the top level, each to the options that it belongs to."""
    draft = Draft()
    draft.logging = {ours: found.pop(name) for name, ours in _LOGGING.items() if name in found}
    draft.files = {name: found.pop(name) for name in ("pid_file", "ports_file_dir") if name in found}
    draft.cluster = found.pop("cluster", {})
    draft.monitoring = _monitoring(found)
    spread_address(found)
    operator = _operator(found, reading, path)
    if operator is not None:
        draft.broker["operator"] = operator
    for name in ("authorization", "jetstream"):
        draft.broker |= found.pop(name, {})
    if "store_dir" in found and "store_dir" in draft.broker:
        reading.error(Place(path, 1, 1), "Duplicate 'store_dir' configuration")
    draft.broker |= {key: value for key, value in found.items() if value is not None}
    if "no_advertise" in draft.cluster:
        draft.broker["no_advertise"] = draft.cluster["no_advertise"]
    return draft


def _monitoring(found: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, port in (("http", "port"), ("https", "tls_port")):
        if name in found:
            host, settings[port] = found.pop(name)
            if host:
                settings["host"] = host
        if f"{name}_port" in found:
            settings[port] = found.pop(f"{name}_port")
    if "http_base_path" in found:
        settings["base_path"] = found.pop("http_base_path")
    if "metrics_prefix" in found:
        settings["metrics_prefix"] = found.pop("metrics_prefix")
    return settings


def _operator(found: dict[str, Any], reading: Reading, path: str) -> OperatorOptions | None:
    operators = found.pop("operator", ())
    preload = found.pop("resolver_preload", {})
    resolver = found.pop("resolver", ResolverOptions())
    tls = found.pop("resolver_tls", {})
    keys = found.pop("trusted_keys", ())
    pinned = found.pop("resolver_pinned_accounts", ())
    sentinel = found.pop("default_sentinel", "")
    if not operators and not keys:
        if preload:
            reading.error(Place(path, 1, 1), '"resolver_preload" without an operator: these accounts are not signed')
        return None
    return OperatorOptions(
        operators=operators,
        resolver=preload,
        system_account=found.pop("system_account", ""),
        trusted_keys=keys,
        pinned_accounts=pinned,
        accounts_from=resolver.replace(**tls) if tls else resolver,
        default_sentinel=sentinel,
    )
