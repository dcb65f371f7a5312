"""Large messages to several receivers at once: each gets all of them in order, whatever waits for the others."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.certificates import Certificates, make_certificates
from support.embedded_broker import EmbeddedBroker
from support.raw_wire import RawLink, connect_op, dial
from support.tls_wire import trusting
from support.websocket_wire import COMPRESSION, WebSocketLink

from headwater.exchange.router import LARGE
from headwater.net.listener_options import TlsOptions, WebSocketOptions
from headwater.options.broker import BrokerOptions

MIB = 1 << 20
SIZES = (1, LARGE - 20, LARGE, 3, LARGE + 1, MIB - 20, 200_000, 5, MIB - 200)
BLOCK = b"NATS/1.0\r\nA: 1\r\n\r\n"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def broker(certificates: Certificates) -> Iterator[EmbeddedBroker]:
    tls = TlsOptions(cert_file=Path(certificates.server_cert), key_file=Path(certificates.server_key))
    options = BrokerOptions(max_pending=8 << 20, websocket=WebSocketOptions(tls=tls, compression=True))
    with EmbeddedBroker(options) as embedded:
        yield embedded


def published(numbers: range) -> tuple[bytes, bytes]:
    """Ops, every third with headers; and what a receiver with the sid 7 gets of them."""
    ops: list[bytes] = []
    messages: list[bytes] = []
    for number in numbers:
        payload = b"%d." % number + bytes([number % 251]) * SIZES[number % len(SIZES)]
        size = len(payload)
        if number % 3:
            line, body = b"%d\r\n" % size, payload + b"\r\n"
        else:
            line, body = b"r %d %d\r\n" % (len(BLOCK), len(BLOCK) + size), BLOCK + payload + b"\r\n"
        head = b"" if number % 3 else b"H"
        ops += [b"%bPUB big " % head, line, body]
        messages += [b"%bMSG big 7 " % head, line, body]
    return b"".join(ops), b"".join(messages)


def received(link: RawLink, size: int) -> bytes:
    """So many bytes of messages; a link that is two seconds old receives a PING of the server's between them."""
    found = link.receive(size).replace(b"PING\r\n", b"")
    return found + link.receive(size - len(found)) if len(found) < size else found


def test_each_receiver_gets_large_messages_in_order_and_only_the_one_that_never_reads_is_cut(
    broker: EmbeddedBroker, certificates: Certificates
) -> None:
    plain, late, silent = (dial(broker.port) for _ in range(3))
    secured = WebSocketLink(broker.websocket_port, trusting(certificates))
    compressed = WebSocketLink(broker.websocket_port, trusting(certificates), COMPRESSION)
    assert (secured.compresses, compressed.compresses) == (False, True)
    publisher = dial(broker.port)
    secured.send(connect_op())
    compressed.send(connect_op())
    for unread in (late, silent):
        unread._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    readers: tuple[RawLink, ...] = (plain, late, secured, compressed)
    for link in (*readers, silent):
        link.send(b"SUB big 7\r\n")
        assert link.settle() == b""
    first, expected = published(range(18))
    second, rest = published(range(18, 90))
    expected += rest
    with ThreadPoolExecutor(len(readers)) as threads:
        found = [threads.submit(received, link, len(expected)) for link in (plain, secured, compressed)]
        publisher.send(first)
        publisher.settle()
        found.append(threads.submit(received, late, len(expected)))
        publisher.send(second)
        publisher.settle()
        for each in found:
            assert each.result(60) == expected
    register, accounts = broker.broker.sessions, broker.broker.accounts
    assert register is not None
    assert accounts is not None
    assert accounts.slow_consumers + register.watch.slow_consumers == 1
    assert silent.receive_end().startswith(published(range(2))[1]), "what the kernel had taken is still whole"
    for link in (*readers, publisher, silent):
        link.close()
