"""Streams that are not under `$JS.API` where Spark connects: in a domain behind a leaf node, and in another account. And
servers that ask for certificates or credentials."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from support.certificates import make_certificates
from support.configured_servers import KINDS, serve
from support.embedded_broker import EmbeddedBroker, options_of
from support.operator_chain import Chain, Key
from support.stream_filling import fill, numbered

from headwater.errors import (
    AuthorizationError,
    ConfigError,
    EnvironmentProblem,
    HeadwaterError,
    HostUnknown,
    RequestTimeout,
    TlsRefused,
    TransportError,
)
from headwater.model.nkey import NkeyKind
from headwater.spark.connections import take
from headwater.spark.iggy.links import persistently
from headwater.spark.iggy.options import IggyServer
from headwater.spark.offsets import StreamState
from headwater.spark.options import parse_options
from headwater.spark.planner import StreamPlanner
from headwater.spark.range_reader import read_range, stream_state
from headwater.spark.ranges import Range
from headwater.spark.server_options import ServerOptions
from headwater.spark_runtime import persistence

COUNT = 50


@contextmanager
def behind_a_leaf_node(directory: Path) -> Iterator[tuple[str, str]]:
    """Where to fill a stream, and where it is read."""
    here, there = directory / "hub.conf", directory / "spoke.conf"
    here.write_text(f'jetstream {{ store_dir: "{directory}/js", domain: hub }}\nleafnodes {{ listen: "127.0.0.1:-1" }}')
    with EmbeddedBroker(options_of(here)) as hub:
        leafs = hub.broker.leafnodes
        assert leafs is not None
        there.write_text(f'leafnodes {{ remotes: [ {{ url: "nats-leaf://127.0.0.1:{leafs.port}" }} ] }}')
        with EmbeddedBroker(options_of(there)) as spoke:
            joined = spoke.broker.leafnodes
            assert joined is not None
            spoke.run(lambda: asyncio.wait_for(joined.wait_for(1), 20))
            yield hub.url, spoke.url


@contextmanager
def in_another_account(directory: Path) -> Iterator[tuple[str, str]]:
    config = directory / "server.conf"
    config.write_text(
        f'jetstream {{ store_dir: "{directory}/js" }}\n'
        "accounts {\n"
        "  A { jetstream: enabled, users: [ {user: a, password: a} ]\n"
        "      exports: [ {service: '$JS.API.>', response: stream} ] }\n"
        "  B { users: [ {user: b, password: b} ]\n"
        "      imports: [ {service: {account: A, subject: '$JS.API.>'}, to: 'there.>'} ] }\n"
        "}"
    )
    with EmbeddedBroker(options_of(config)) as broker:
        yield f"nats://a:a@127.0.0.1:{broker.port}", f"nats://127.0.0.1:{broker.port}"


def state_of(server: ServerOptions) -> StreamState:
    """Of the stream; a hub's interest reaches its leaf node a moment after that has joined."""
    client = take(server, 5.0)
    try:
        for _ in range(2000):
            try:
                return stream_state(client, "FAR")
            except EnvironmentProblem:
                time.sleep(0.01)
        raise AssertionError("nobody answers for the stream")
    finally:
        client.close()


@pytest.mark.parametrize("transport", ["auto", "consumer"])
@pytest.mark.parametrize(("place", "api"), [(behind_a_leaf_node, "$JS.hub.API"), (in_another_account, "there")])
def test_a_stream_is_read_under_the_prefix_of_its_api(
    place: Callable[[Path], AbstractContextManager[tuple[str, str]]],
    api: str,
    transport: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("WORD", "b")
    login = {"user": "b", "password": "env:WORD"} if api == "there" else {}
    with place(tmp_path) as (filled, read):
        fill(filled, "FAR", ["far.*"], numbered("far", COUNT))
        options = parse_options({"servers": read, "stream": "FAR", "jsApi": api, "transport": transport, **login})
        state = state_of(options.server)
        wanted = Range("FAR", state.created, 1, COUNT + 1)
        with caplog.at_level(logging.WARNING, "headwater.spark"):
            assert sum(columns.rows for columns in read_range(wanted, options)) == COUNT
    assert [line for line in caplog.messages if line.startswith("read_through_consumer")] == []


def rows_of_a_new_stream(port: int, **options: str) -> int:
    """How many rows are read of three that are stored, both with these options."""
    made = parse_options({"servers": f"nats://127.0.0.1:{port}", "stream": "KEPT", **options})
    client = take(made.server, 5.0)
    created = client.api("STREAM.CREATE.KEPT", {"name": "KEPT", "subjects": ["kept"], "storage": "memory"})["created"]
    for _ in range(3):
        client.request("kept", b"x")
    client.close()
    return sum(columns.rows for columns in read_range(Range("KEPT", created, 1, 4), made))


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_is_shown_and_a_refusal_names_the_options(kind: str, tmp_path: Path) -> None:
    files = make_certificates(tmp_path / "files")
    known = {"tlsCa": str(files.ca), "tlsCert": str(files.client_cert), "tlsKey": str(files.client_key)}
    config = (
        f'jetstream {{ store_dir: "{tmp_path}/js" }}\ntls {{ cert_file: "{files.server_cert}"\n'
        f'key_file: "{files.server_key}"\nca_file: "{files.ca}"\nverify: true }}'
    )
    wrong: list[tuple[dict[str, str], type[HeadwaterError], str]] = [
        ({"tlsCa": str(files.stranger_ca)}, TlsRefused, "tlsCa"),
        ({"tlsHostname": "example.org"}, TlsRefused, "option tlsHostname"),
        ({"tlsCert": "", "tlsKey": ""}, TlsRefused, "tlsCert"),
        ({"tlsCert": str(files.stranger_cert), "tlsKey": str(files.stranger_key)}, TlsRefused, "tlsCert"),
        ({"tlsKey": str(files.stranger_key)}, ConfigError, "tlsKey"),
        ({"tlsCa": str(tmp_path / "none")}, ConfigError, "tlsCa"),
        ({"tlsFirst": "true"}, TlsRefused, "option tlsFirst"),
    ]
    with serve(kind, tmp_path / "server", config) as server:
        assert rows_of_a_new_stream(server.port, **known) == 3
        for options, error, named in wrong:
            given = {"servers": f"nats://127.0.0.1:{server.port}", "stream": "KEPT", **known, **options}
            begun = time.monotonic()
            with pytest.raises(error) as refused:
                StreamPlanner(parse_options(given)).state()
            assert named in refused.value.hint, options
            assert time.monotonic() - begun < 15, options  # readTimeout is 30


@pytest.mark.parametrize("kind", KINDS)
def test_a_creds_file_and_an_nkey_are_shown_and_a_refusal_names_the_options(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, user = Chain(limits={"mem_storage": -1, "disk_storage": -1}), Key(NkeyKind.USER, 50)
    good, foreign = tmp_path / "good.creds", tmp_path / "foreign.creds"
    good.write_text(chain.creds(user))
    foreign.write_text(chain.creds(user).replace(user.seed, Key(NkeyKind.USER, 51).seed))
    monkeypatch.setenv("SEED", user.seed)
    jetstream = f'jetstream {{ store_dir: "{tmp_path}/js" }}\n'
    with serve(kind, tmp_path / "jwt", jetstream + chain.config()) as server:
        assert rows_of_a_new_stream(server.port, creds=str(good)) == 3
        for creds, error in ((foreign, AuthorizationError), (tmp_path / "none", ConfigError)):
            with pytest.raises(error) as refused:
                rows_of_a_new_stream(server.port, creds=str(creds))
            assert "creds" in refused.value.hint and user.seed not in str(refused.value)
    with serve(
        kind, tmp_path / "nkey", jetstream + f"authorization {{ users: [ {{ nkey: {user.public} }} ] }}"
    ) as server:
        assert rows_of_a_new_stream(server.port, nkey="env:SEED") == 3
        with pytest.raises(AuthorizationError) as refused:
            rows_of_a_new_stream(server.port)
        assert "nkey" in str(refused.value)


@pytest.mark.parametrize("scheme", ["nats", "iggy"])
def test_a_host_that_has_no_address_is_named_with_its_option_long_before_the_read_timeout(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(host: str, *others: int) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(persistence, "UNKNOWN_HOST_PATIENCE", 0.5)
    servers = f"{scheme}://mistyped.example"
    with pytest.raises(HostUnknown) as refused:
        if scheme == "nats":
            StreamPlanner(parse_options({"servers": servers, "stream": "S"})).state()
        else:
            persistently(IggyServer((("mistyped.example", 1),)), 30.0, "topic", lambda client: None)
    assert "mistyped.example" in refused.value.message and "option servers" in refused.value.hint


def test_a_server_whose_certificate_is_refused_does_not_end_the_wait_for_another(tmp_path: Path) -> None:
    """One of two servers is away: the refusal by the other is not the last word."""
    files = make_certificates(tmp_path / "files")
    config = f'tls {{ cert_file: "{files.server_cert}"\nkey_file: "{files.server_key}" }}'
    with serve("headwater", tmp_path / "server", config) as server:
        for servers in (f"127.0.0.1:1,127.0.0.1:{server.port}", f"127.0.0.1:{server.port},127.0.0.1:1"):
            with pytest.raises(TransportError, match=r"cannot connect to 127\.0\.0\.1:1:"):
                take(ServerOptions(servers=tuple(servers.split(",")), tls_ca=str(files.stranger_ca)), 5.0)


def test_a_server_that_says_nothing_is_passed_over_for_the_next_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, serve("headwater", tmp_path / "server", "") as server:
        servers = f"127.0.0.1:{silent.getsockname()[1]}", f"127.0.0.1:{server.port}"
        take(ServerOptions(servers=servers), 0.5).close()
        with pytest.raises(RequestTimeout, match="option tlsFirst"):
            take(ServerOptions(servers=servers[:1]), 0.5)
