"""Top-level fields become options; what we do not know, or do not do, is reported with its place."""

from collections.abc import Callable
from dataclasses import fields as options_of
from pathlib import Path

import pytest
from support.checkout import ROOT

from headwater.errors import ConfigError
from headwater.model.stream_limits import ServerLimits
from headwater.net.listener_options import MonitoringOptions
from headwater.options.access import JetStreamLimits
from headwater.options.broker import BrokerOptions
from headwater.server.config.draft import Draft, LoggingOptions
from headwater.server.config.fields import Support
from headwater.server.config.schema import BLOCKS, TOP, read_config

Load = Callable[..., Draft]
Refusal = Callable[..., str]


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        ("port: 5222", "port", 5222),
        ("port: -1", "port", 0),
        ("port: 0", "port", 4222),
        ("# nothing", "port", 4222),
        ("# nothing", "host", "0.0.0.0"),
        ("net: 127.0.0.1", "host", "127.0.0.1"),
        ("listen: 127.0.0.1:5222", "host", "127.0.0.1"),
        ("listen: 127.0.0.1:5222", "port", 5222),
        ('listen: "[::1]:5222"', "host", "::1"),
        ("listen: 5222", "port", 5222),
        ("server_name: n1", "server_name", "n1"),
        ("max_payload: 64MB", "max_payload", 64 << 20),
        ("max_payload: 0", "max_payload", 1 << 20),
        ("max_control_line: 2KB", "max_control_line", 2048),
        ("max_conn: 5", "max_connections", 5),
        ("max_connections: -1", "max_connections", (1 << 31) - 1),
        ("max_subs: 7", "max_subscriptions", 7),
        ("max_sub_tokens: 8", "max_subscription_tokens", 8),
        ("max_pending: 10M", "max_pending", 10_000_000),
        ('ping_interval: "30s"', "ping_interval", 30.0),
        ("ping_interval: 20", "ping_interval", 20.0),
        ("ping_max: 3", "ping_max", 3),
        ('write_deadline: "2.5s"', "write_deadline", 2.5),
        ("no_header_support: true", "no_header_support", True),
        ("no_read_pauses: true", "no_read_pauses", True),
        ('lame_duck_duration: "1m"', "lame_duck_duration", 60.0),
        ('lame_duck_grace_period: "0s"', "lame_duck_grace_period", 0.0),
        ("client_advertise: a:1", "client_advertise", "a:1"),
        ("accounts { SYS {} }, system_account: SYS", "system_account", "SYS"),
        ("jetstream: true", "jetstream", True),
        ("jetstream: disabled", "jetstream", False),
        ("jetstream {}", "jetstream", True),
        ("jetstream {enabled: false}", "jetstream", False),
        ("jetstream {store_dir: /data}", "store_dir", Path("/data")),
        ("store_dir: /data", "store_dir", Path("/data")),
        ("jetstream {sync: always}", "sync", "always"),
        ('jetstream {sync_interval: "2m"}', "sync", "interval"),
        ("jetstream {domain: hub}", "jetstream_domain", "hub"),
        ("jetstream {limits: {default_max_consumers: 5}}", "default_max_consumers", 5),
        ("jetstream {limits: {default_max_consumers: 0}}", "default_max_consumers", 1000),
        ("jetstream {limits: {batch: {max_msgs: 0}}}", "stream_limits", ServerLimits()),
        (
            'jetstream {limits: {max_ack_pending: 5, duplicate_window: "3s", batch: {max_msgs: 7, timeout: "2s"}}}',
            "stream_limits",
            ServerLimits(5, 0, 3_000_000_000, batch_messages=7, batch_timeout=2_000_000_000),
        ),
        ("jetstream {domain: hub}", "jetstream_domain", "hub"),
        ("feature_flags {js_ack_fc_v2: true}", "scoped_acks", True),
        ("feature_flags {js_ack_fc_v2: false, js_raft_delete_range: false}", "scoped_acks", False),
        ('jetstream {max_mem: 1G, max_file: "2K"}', "jetstream_limits", JetStreamLimits(max_memory=10**9, max_file=2048)),
        ("PORT: 5222", "port", 5222),
    ],
)  # fmt: skip
def test_a_field_sets_its_option(load_text: Load, text: str, option: str, value: object) -> None:
    assert getattr(load_text(text).finish().broker, option) == value


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("host: h\nmax_payload: -1", "server.conf:2:1: max_payload must be at least 1"),
        ("host: h\nping_interval: -2", "server.conf:2:1: ping_interval must be above 0"),
        ("\nmax_pending: 5", "server.conf:2:1: max_payload is larger than max_pending"),
        ("\nno_auth_user: nobody", "server.conf:2:1: no_auth_user 'nobody' is no user"),
        ("authorization { users: [\n{user: a, password: a}\n{user: b, password: b}\n{user: a, password: c} ] }",
         'server.conf:4:2: Duplicate user "a"'),
        ("jetstream {\n domain: a.b }", "server.conf:2:2: invalid domain name"),
        ('leafnodes { remotes: [\n{url: "nats-leaf://h:1", account: NOPE} ] }', "server.conf:2:26: cannot find local"),
        ("\nsystem_account: NOPE", 'server.conf:2:1: system_account "NOPE" is no account'),
        ("\nclient_advertise: 'h:port'", "server.conf:2:1: client_advertise 'h:port' cannot be announced"),
        ("cluster { port: 6222\n advertise: 'x:y:z' }", "server.conf:2:2: advertise 'x:y:z' cannot be announced"),
        ("leafnodes { port: 7422\n advertise: ':1' }", "server.conf:2:2: advertise ':1' cannot be announced"),
        ("\ntrusted_keys: xx", 'server.conf:2:1: "trusted_keys" contains invalid public operator nkey "xx"'),
        ("\nserver_name: a\nlog_file: a\nhttp: 1.2.3.4:1, https: 1.2.3.4:2", "can't specify both HTTP"),
    ],
)  # fmt: skip
def test_an_error_of_the_options_names_the_line_of_the_file(load_text: Load, text: str, begins: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_text(text).finish()
    assert str(refused.value).startswith(begins), refused.value


def test_every_keyword_that_a_field_sets_is_an_option() -> None:
    """A typing error in the table would otherwise show only for who uses the field."""
    elsewhere = {
        "listen", "http", "https", "http_port", "https_port", "http_base_path", "metrics_prefix", "resolver",
        "resolver_preload", "resolver_tls", "trusted_keys", "resolver_pinned_accounts", "default_sentinel",
            "cluster", "debug", "trace", "logtime", "logtime_utc", "log_file",
        "log_size_limit", "log_max_num", "trace_system", "max_traced", "pid_file", "ports_file_dir", "allow_non_tls",
    }  # fmt: skip
    known = {option.name for option in options_of(BrokerOptions)} | elsewhere
    assert {field.to for field in TOP.fields if field.support is Support.DONE} - known == set()


def test_logging_monitoring_and_files(load_text: Load) -> None:
    config = load_text(
        "host: 127.0.0.1, http: 8222, http_base_path: nats/\n"
        "debug: true; logtime: false; log_file: /tmp/l; log_size_limit: 1MB; log_max_num: 3\n"
        "pid_file: /tmp/p; ports_file_dir: /tmp"
    ).finish()
    assert config.monitoring == MonitoringOptions(host="127.0.0.1", port=8222, base_path="/nats")
    assert config.logging == LoggingOptions(
        file=Path("/tmp/l"), debug=True, time=False, size_limit=1 << 20, max_files=3
    )
    assert (config.pid_file, config.ports_file_dir) == (Path("/tmp/p"), Path("/tmp"))


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("monitor_port: -1", "0.0.0.0", 0),
        ("http: 127.0.0.1:8222", "127.0.0.1", 8222),
        ('http: "[::1]:-1"', "::1", 0),
        ("http_port: 8222, host: 127.0.0.2", "127.0.0.2", 8222),
    ],
)
def test_monitoring_listens_where_it_is_told(load_text: Load, text: str, host: str, port: int) -> None:
    assert load_text(text).finish().monitoring == MonitoringOptions(host=host, port=port)


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("\n foo: 1", ['server.conf:2:2: unknown field "foo"']),
        ("\n\nmax_payloads: 1", ['server.conf:3:1: unknown field "max_payloads"; did you mean "max_payload"?']),
        (
            "foo: 1\nauthorization {\n  bar: 2 }",
            ['server.conf:1:1: unknown field "foo"', 'server.conf:3:3: unknown field "bar"'],
        ),
        ('port: "4222"', ['server.conf:1:1: "port" must be a number, not a string']),
        ("port: 70000", ['server.conf:1:1: "port" is no port: -1 takes any free one, others go up to 65535']),
        ("debug: 1", ['server.conf:1:1: "debug" must be true or false, not a number']),
        ("max_payload: 4GB", ['server.conf:1:1: "max_payload" value is too big']),
        ("jetstream: maybe", ['server.conf:1:1: "jetstream" must be "enabled" or "disabled"']),
        ("jetstream {key: x}", ['server.conf:1:12: "key" is a field of nats-server that Headwater does not do: streams '
                                "are not encrypted"]),
        ("gateway {name: x}", ['server.conf:1:1: "gateway" is a field of nats-server that Headwater does not do: there '
                               "are no superclusters"]),
        ('lame_duck_duration: "10s"', ['server.conf:1:1: "lame_duck_duration" of 10 s is invalid: the minimum is 30 '
                                       "seconds"]),
        ("listen: here", ['server.conf:1:1: "listen" could not parse address: write host:port']),
        ("store_dir: a\njetstream {store_dir: b}", ["server.conf:1:1: Duplicate 'store_dir' configuration"]),
        ("max_payload: 2MB, max_pending: 1MB", ["server.conf:1:1: max_payload is larger than max_pending: "
         "such a message would cut off "
                                                "whoever receives it"]),
        ("http: 1, https: 2", ["can't specify both HTTP (1) and HTTPS (2) ports for monitoring"]),
        ("https: 2", ["TLS is needed for HTTPS monitoring"]),
        ("no_auth_user: x", ["server.conf:1:1: no_auth_user 'x' is no user of the configuration"]),
        ("tls {cert_file: gone.pem, key_file: gone.key}", [
            'server.conf:1:1: "tls" needs a cert_file and a key_file that can be read',
            "server.conf:1:6: \"cert_file\" names 'gone.pem': No such file or directory",
            "server.conf:1:27: \"key_file\" names 'gone.key': No such file or directory"]),
    ],
)  # fmt: skip
def test_everything_that_is_wrong_is_said_with_its_place(refusal: Refusal, text: str, reasons: list[str]) -> None:
    assert refusal(text).splitlines() == reasons


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("", ["server.conf:1:1: config has no values or is empty"]),
        ("ping_interval: 20", ["server.conf:1:1: this should be converted to a duration"]),
        ("ping_interval: 2m", ["server.conf:1:1: this should be converted to a duration, which is 2000000 seconds now; "
                               'write "2m", with quotes']),
        ("prof_port: 1", ['server.conf:1:1: "prof_port" changes nothing here: there is no Go profiler']),
        ("no_system_account: false\nmqtt: false", []),
        ("host: a\nnet: b", ['server.conf:2:1: "net" is set a second time under another name; this value is used']),
        ("x: 5\nport: $x", []),
    ],
)  # fmt: skip
def test_warnings(load_text: Load, text: str, warnings: list[str]) -> None:
    assert load_text(text).finish().warnings == tuple(warnings)


def test_a_file_that_is_not_there_is_an_error(refusal: Refusal) -> None:
    from headwater.errors import ConfigError
    from headwater.server.config.schema import load

    with pytest.raises(ConfigError, match=r"^open nowhere.conf: no such file or directory$"):
        load("nowhere.conf", lambda path: Path(path).read_text(), {})


def test_no_name_stands_for_two_fields() -> None:
    for block in BLOCKS:
        names = [name for field in block.fields for name in field.names]
        assert len(names) == len(set(names)), block.title


def test_the_example_of_the_documentation_is_valid(load_text: Load) -> None:
    text = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    example = next(code for code in text.split("```text\n")[1:] if code.startswith("# a comment")).partition("```")[0]
    config = load_text(example, {"limits.conf": "max_connections: 5"}, {"HEADWATER_PASSWORD": "secret"}).finish()
    assert config.warnings == ()
    assert (config.broker.max_payload, config.broker.max_connections, config.broker.ping_interval) == (8 << 20, 5, 30.0)
    assert [user.password for user in config.broker.accounts[0].users] == ["secret", "$2a$11$W2zko751KUvVy59mUTWmpO0"]


def test_secrets_are_in_no_repr_and_no_error(load_text: Load, refusal: Refusal) -> None:
    secret = "hunter2secret"
    text = (
        f"authorization {{ user: a, password: {secret} }}\n"
        f"cluster {{ port: -1, routes: [nats://u:{secret}@h:6222], authorization {{user: u, password: {secret}}} }}\n"
        f"websocket {{ port: -1, no_tls: true, authorization {{ user: a, password: {secret} }} }}\n"
    )
    config = load_text(text).finish()
    assert secret not in repr(config)
    for wrong in (
        f"authorization {{ user: a, password: 1-{secret} }}",
        f"authorization {{ user: a, password: [{secret}] }}",
        f"authorization {{ user: a, password: -{secret} }}",
        f"authorization {{ user: a, password: b, token: {secret} }}",
        f"authorization {{ password: {secret} }}",
        f'cluster {{ port: -1, routes: ["nats://u:{secret}@[h:6222"] }}',
    ):
        assert secret not in refusal(wrong)


def test_a_program_reads_a_file_with_the_variables_it_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("listen: 127.0.0.1:-1, http: 127.0.0.1:-1\nserver_name: $NAME_OF_IT\ninclude more.conf")
    (tmp_path / "more.conf").write_text("max_payload: 2MB")
    config = read_config(file, {"NAME_OF_IT": "mine"})
    assert (config.broker.port, config.broker.server_name, config.broker.max_payload) == (0, "mine", 2 << 20)
    assert config.monitoring is not None
    monkeypatch.setenv("NAME_OF_IT", "theirs")
    assert read_config(str(file)).broker.server_name == "theirs"
    with pytest.raises(ConfigError, match=r"open .*none\.conf: no such file or directory"):
        read_config(tmp_path / "none.conf")
