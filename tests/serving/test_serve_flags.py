"""Flags change what the configuration file has set."""

import re
import subprocess
from pathlib import Path

import pytest
from support.nats_server import nats_server_binary

from headwater.errors import ConfigError
from headwater.net.listener_options import MonitoringOptions, TlsOptions
from headwater.options.access import AuthorizationOptions
from headwater.options.cluster import ClusterOptions
from headwater.server.config.draft import Draft, LoggingOptions, ServerConfig
from headwater.serving.serve_flags import FLAGS, apply, read, usage


def configured(words: str, draft: Draft | None = None) -> ServerConfig:
    draft = draft or Draft()
    apply(read(words.split()), draft)
    return draft.finish()


@pytest.mark.parametrize(
    ("words", "option", "value"),
    [
        ("", "port", 4222),
        ("-p 5222", "port", 5222),
        ("-p -1", "port", 0),
        ("-a 127.0.0.1", "host", "127.0.0.1"),
        ("--net=127.0.0.1", "host", "127.0.0.1"),
        ("-n x", "server_name", "x"),
        ("-js", "jetstream", True),
        ("-sd=/data", "store_dir", "/data"),
        ("--sync never", "sync", "never"),
        ("--max_payload 100", "max_payload", 100),
        ("--user a --pass b", "authorization", AuthorizationOptions(username="a", password="b")),
        ("--auth t", "authorization", AuthorizationOptions(token="t")),
        ("--client_advertise a:1", "client_advertise", "a:1"),
        ("--tls --tlscert c --tlskey k", "tls", TlsOptions(cert_file=Path("c"), key_file=Path("k"))),
        (
            "--tlsverify --tlscert c --tlskey k --tlscacert a",
            "tls",
            TlsOptions(cert_file=Path("c"), key_file=Path("k"), ca_file=Path("a"), verify=True),
        ),
        ("--no_advertise", "no_advertise", True),
    ],
)
def test_a_flag_sets_its_option(words: str, option: str, value: object) -> None:
    assert getattr(configured(words).broker, option) == value


def test_a_flag_wins_over_the_file() -> None:
    draft = Draft(
        broker={"port": 1, "host": "h", "authorization": AuthorizationOptions(username="file", password="x")},
        logging={"debug": False},
        monitoring={"port": 5, "host": "m"},
    )
    config = configured("-p 2 -D --pass y -m 6", draft)
    assert (config.broker.port, config.broker.host) == (2, "h")
    assert config.broker.authorization == AuthorizationOptions(username="file", password="y")
    assert config.logging.debug
    assert config.monitoring == MonitoringOptions(host="m", port=6)


def test_tls_can_be_switched_off() -> None:
    draft = Draft(broker={"tls": TlsOptions(cert_file=Path("c"), key_file=Path("k"))})
    assert configured("--tls=false", draft).broker.tls is None


@pytest.mark.parametrize(
    ("words", "logging"),
    [
        ("-D", LoggingOptions(debug=True)),
        ("-V", LoggingOptions(trace=True)),
        ("-DV", LoggingOptions(debug=True, trace=True)),
        ("-DVV", LoggingOptions(debug=True, trace=True, trace_system=True)),
        ("-VV", LoggingOptions(trace=True, trace_system=True)),
        ("-T=false --logtime_utc", LoggingOptions(time=False, utc=True)),
        ("-l /tmp/x --log_size_limit 10", LoggingOptions(file=Path("/tmp/x"), size_limit=10)),
    ],
)
def test_logging(words: str, logging: LoggingOptions) -> None:
    assert configured(words).logging == logging


def test_a_cluster_comes_from_a_url_and_its_routes() -> None:
    words = "--cluster nats://u:p%40@127.0.0.1:-1 --cluster_name c --routes nats://a:1,nats://b:2 --connect_retries 3"
    assert configured(words).broker.cluster == ClusterOptions(
        name="c", host="127.0.0.1", port=0, username="u", password="p@", routes=("nats://a:1", "nats://b:2"),
        connect_retries=3,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--routes nats://a:1", "solicited routes require cluster capabilities"),
        ("--cluster here", "--cluster takes a URL"),
        ("--cluster nats://u@a:1", "expected cluster password to be set"),
        ("--tls", "TLS Server certificate must be present and valid"),
        ("--tlscert c", "TLS Server private key must be present and valid"),
        ("--syslog", "there is no syslog here"),
        ("-r udp://x:1", "there is no syslog here"),
        ("-ms 1", "TLS is needed for HTTPS monitoring"),
        ("--user a --auth b", "more than one of"),
        ("--sync sometimes", "sync is 'sometimes'"),
        ("frob", "unknown argument: frob"),
        ("-p 99999", "address 99999: invalid port"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        configured(words)


def test_files_and_warnings() -> None:
    config = configured("-P /tmp/p --ports_file_dir /tmp --profile 6060")
    assert (config.pid_file, config.ports_file_dir) == (Path("/tmp/p"), Path("/tmp"))
    assert config.warnings == ("--profile changes nothing here: there is no Go profiler",)


def test_a_directory_for_streams_that_no_face_will_have_is_a_warning() -> None:
    assert [text.partition(" ")[0] for text in configured("-sd /data --sync never").warnings] == [
        "--store_dir",
        "--sync",
    ]
    for words in ("-js -sd /data", "--iggy 127.0.0.1:0 -sd /data"):
        assert not configured(words).warnings
    assert not configured("-sd /data", Draft(broker={"jetstream": True})).warnings


def test_the_help_names_every_flag_once() -> None:
    names = [name for flag in FLAGS for name in flag.names]
    assert len(names) == len(set(names))
    words = usage().replace(",", " ").split()
    assert all(f"-{name}" in words or f"--{name}" in words for name in names)


def test_every_flag_of_nats_servers_help_is_known() -> None:
    """From the help of nats-server 2.15.1, and the documents that came with the mission."""
    theirs = (
        "a addr net p port n name server_name P pid m http_port ms https_port c config t sl signal client_advertise "
        "ports_file_dir l log T logtime logtime_utc s syslog r remote_syslog D debug V trace VV DV DVV log_size_limit "
        "max_traced_msg_len js jetstream sd store_dir user pass auth tls tlscert tlskey tlsverify tlscacert routes "
        "cluster cluster_name no_advertise cluster_advertise connect_retries cluster_listen profile h help v version "
        "help_tls"
    )
    assert set(theirs.split()) - {name for flag in FLAGS for name in flag.names} == set()


@pytest.mark.interop
def test_every_flag_that_the_real_server_lists_is_known() -> None:
    """`nats-server --help`, read now: a newer binary with a new flag fails here."""
    done = subprocess.run([nats_server_binary(), "--help"], capture_output=True, text=True, timeout=30, check=False)
    listed = set(re.findall(r"(?:^|[ ,])--?([A-Za-z]\w*)", done.stdout + done.stderr, re.MULTILINE))
    assert len(listed) > 50
    assert listed - {name for flag in FLAGS for name in flag.names} == set()
