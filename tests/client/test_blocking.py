"""The blocking client on the real nats-server, and on fakes where a server would have to misbehave."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from support.nats_server import NatsServer, start_nats_server

from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.errors import (
    AuthorizationError,
    EnvironmentProblem,
    JetStreamError,
    NoResponders,
    RemoteProtocolError,
    RequestTimeout,
    ServerError,
    TransportError,
)
from headwater.net.blocking import deadline_after
from headwater.wire.columns import ColumnDecoder
from headwater.wire.server_ops import ServerOpParser

INFO = b'INFO {"server_id":"FAKE","headers":true,"max_payload":1048576} \r\n'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with start_nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


def fake(script: Callable[[socket.socket], None]) -> str:
    """A server for one connection that does what the script says."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(10)
                script(peer)

    threading.Thread(target=serve, daemon=True).start()
    return f"nats://127.0.0.1:{listener.getsockname()[1]}"


def read_until(peer: socket.socket, mark: bytes) -> bytes:
    data = b""
    while mark not in data:
        piece = peer.recv(4096)
        if not piece:
            break
        data += piece
    return data


def welcome(peer: socket.socket) -> bytes:
    peer.sendall(INFO)
    hello = read_until(peer, b"PING\r\n")
    peer.sendall(b"PONG\r\n")
    return hello


def test_the_first_server_that_answers_is_taken(server: NatsServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    client = BlockingClient.connect(ClientOptions(servers=[f"nats://127.0.0.1:{port}", server.url]))
    assert client.info.port == server.port
    client.close()


def test_no_server_at_all_is_a_transport_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(TransportError):
        BlockingClient.connect(ClientOptions(servers=[f"nats://127.0.0.1:{port}"], connect_timeout=2))


def test_jetstream_calls_return_their_answer_and_raise_its_error(server: NatsServer) -> None:
    client = BlockingClient.connect(ClientOptions(servers=[server.url]))
    created = client.api("STREAM.CREATE.CALLS", {"name": "CALLS", "subjects": ["calls.>"]})
    assert created["config"]["name"] == "CALLS"
    with pytest.raises(JetStreamError) as refused:
        client.api("STREAM.INFO.NOPE")
    assert (refused.value.code, refused.value.err_code) == (404, 10059)
    assert client.api("STREAM.INFO.CALLS")["state"]["messages"] == 0
    client.close()


def test_a_request_that_nobody_answers(server: NatsServer) -> None:
    client = BlockingClient.connect(ClientOptions(servers=[server.url]))
    with pytest.raises(NoResponders):
        client.request("nobody.there", b"?")
    sid, inbox = client.subscribe()
    with pytest.raises(RequestTimeout, match="an answer to"):
        client.request(inbox, b"?", timeout=0.05)
    client.unsubscribe(sid)
    client.close()


def test_pulled_messages_reach_the_callers_parser(server: NatsServer) -> None:
    client = BlockingClient.connect(ClientOptions(servers=[server.url]))
    client.api("STREAM.CREATE.PULLED", {"name": "PULLED", "subjects": ["pulled.>"]})
    for number in range(5):
        client.request(f"pulled.{number}", b"%d" % number)
    config = {"ack_policy": "none", "deliver_policy": "all"}
    consumer = client.api("CONSUMER.CREATE.PULLED", {"stream_name": "PULLED", "config": config})["name"]
    sid, inbox = client.subscribe()
    decoder = ColumnDecoder(sid, 1, 100, with_map=True, with_raw=False)
    parser = ServerOpParser(decoder)
    client.pull("PULLED", consumer, inbox, 3, 5.0)
    deadline = deadline_after(10)
    while decoder.received < 3:
        assert client.feed(parser, deadline)
    assert not client.feed(parser, deadline_after(0.05))
    client.pull("PULLED", consumer, inbox, 10, 0.05)
    while not decoder.statuses:
        assert client.feed(parser, deadline)
    assert decoder.rows == 5
    assert decoder.statuses[0].startswith(b"NATS/1.0 408")
    client.unsubscribe(sid)
    client.forget_consumer("PULLED", consumer)
    # nats-server handles API calls side by side: the deletion may come after the next answer.
    while client.api("CONSUMER.NAMES.PULLED")["consumers"]:
        assert time.monotonic() < deadline
    client.close()


def test_wrong_credentials_are_an_authorization_error_and_right_ones_are_not(tmp_path: Path) -> None:
    with start_nats_server(tmp_path, "--user", "me", "--pass", "right", jetstream=False) as guarded:
        with pytest.raises(AuthorizationError):
            BlockingClient.connect(ClientOptions(servers=[guarded.url], user="me", password="wrong"))
        BlockingClient.connect(ClientOptions(servers=[guarded.url], user="me", password="right")).close()
    with start_nats_server(tmp_path, "--auth", "sesame", jetstream=False) as guarded:
        with pytest.raises(AuthorizationError):
            BlockingClient.connect(ClientOptions(servers=[guarded.url]))
        BlockingClient.connect(ClientOptions(servers=[guarded.url], token="sesame")).close()


def test_a_server_without_jetstream_says_how_to_get_it(tmp_path: Path) -> None:
    with start_nats_server(tmp_path, jetstream=False) as plain:
        client = BlockingClient.connect(ClientOptions(servers=[plain.url]))
        with pytest.raises(EnvironmentProblem, match="-js"):
            client.api("INFO")
        client.close()


def test_a_ping_while_waiting_is_answered() -> None:
    answered: list[bytes] = []

    def script(peer: socket.socket) -> None:
        welcome(peer)
        question = read_until(peer, b"?\r\n")
        peer.sendall(b"PING\r\n")
        answered.append(read_until(peer, b"PONG\r\n"))
        reply = question.split(b"\r\n")[0].split(b" ")[2]
        peer.sendall(b"MSG %b 1 2\r\nhi\r\n" % reply)

    client = BlockingClient.connect(ClientOptions(servers=[fake(script)]))
    assert client.request("x", b"?", timeout=10) == (b"", b"hi")
    assert answered == [b"PONG\r\n"]
    client.close()


def test_what_the_server_says_in_place_of_an_answer_is_raised() -> None:
    def script(peer: socket.socket) -> None:
        welcome(peer)
        read_until(peer, b"?\r\n")
        peer.sendall(b"-ERR 'Permissions Violation for Publish to \"x\"'\r\n")
        read_until(peer, b"?\r\n")
        peer.sendall(b"-ERR 'Something Else'\r\n")
        peer.recv(1)

    client = BlockingClient.connect(ClientOptions(servers=[fake(script)]))
    with pytest.raises(AuthorizationError, match="Permissions Violation"):
        client.request("x", b"?", timeout=10)
    with pytest.raises(ServerError, match="Something Else"):
        client.request("x", b"?", timeout=10)
    client.close()


def test_a_server_that_speaks_another_protocol_is_a_remote_protocol_error() -> None:
    url = fake(lambda peer: peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    with pytest.raises(RemoteProtocolError):
        BlockingClient.connect(ClientOptions(servers=[url]))


def secured(directory: Path, more: str = "") -> tuple[NatsServer, Path]:
    """A server with TLS for localhost, and the authority to trust; authority.pem, client.pem, client.key lie beside."""
    authority = trustme.CA()
    ca = directory / "authority.pem"
    authority.cert_pem.write_to_path(str(ca))
    for name, issued in (("server", authority.issue_cert("localhost")), ("client", authority.issue_cert("c@x.org"))):
        issued.cert_chain_pems[0].write_to_path(str(directory / f"{name}.pem"))
        issued.private_key_pem.write_to_path(str(directory / f"{name}.key"))
    files = f'cert_file: "{directory}/server.pem", key_file: "{directory}/server.key", ca_file: "{ca}"'
    config = directory / "tls.conf"
    config.write_text(f"tls {{ {files}{more} }}\n")
    return start_nats_server(directory, "-c", str(config)), ca


@pytest.mark.parametrize("more", ["", ", verify: true", ", handshake_first: true"])
def test_tls_is_spoken_where_the_server_wants_it(tmp_path: Path, more: str) -> None:
    running, ca = secured(tmp_path, more)
    with running as server:
        url = f"nats://localhost:{server.port}"
        options = ClientOptions(servers=[url], tls_ca=ca, tls_first="first" in more)
        if "verify" in more:
            with pytest.raises(TransportError):
                BlockingClient.connect(options)
            cert, key = tmp_path / "client.pem", tmp_path / "client.key"
            options = ClientOptions(servers=[url], tls_ca=ca, tls_cert=cert, tls_key=key)
        client = BlockingClient.connect(options)
        assert client.api("STREAM.CREATE.TLS", {"name": "TLS", "subjects": ["tls"]})["config"]["name"] == "TLS"
        sid, inbox = client.subscribe()
        decoder = ColumnDecoder(sid, 1, 100, with_map=False, with_raw=False)
        for _ in range(20):
            client.request("tls", bytes(100_000))
        config = {"ack_policy": "none", "deliver_policy": "all"}
        consumer = client.api("CONSUMER.CREATE.TLS", {"stream_name": "TLS", "config": config})["name"]
        client.pull("TLS", consumer, inbox, 20, 5.0)
        parser, deadline = ServerOpParser(decoder), deadline_after(10)
        while decoder.rows < 20:
            client.feed(parser, deadline)
            assert time.monotonic() < deadline
        assert not client.feed(parser, deadline_after(0)), "nothing waits in the TLS layer"
        client.close()


def test_a_server_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    running, _ = secured(tmp_path)
    with running as server, pytest.raises(TransportError, match="no TLS"):
        BlockingClient.connect(ClientOptions(servers=[f"nats://localhost:{server.port}"]))


def test_a_server_without_tls_is_refused_when_we_insist(server: NatsServer) -> None:
    with pytest.raises(EnvironmentProblem, match="does not speak TLS"):
        BlockingClient.connect(ClientOptions(servers=[server.url], tls=True))
