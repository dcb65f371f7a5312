"""Ops of a route as we write them: the reader reads them back, and they equal those of real servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.route_transcripts import streams

from headwater.errors import RemoteProtocolError
from headwater.wire import route_lines
from headwater.wire.route_ops import RouteOpHandler, RouteOpParser

words = st.binary(min_size=1, max_size=8).filter(lambda word: not set(word) & set(b" \t\r\n"))


class Ops(RouteOpHandler):
    def __init__(self) -> None:
        self.read: list[tuple[object, ...]] = []

    def on_subscribe(self, subject: bytes, queue: bytes, token: bytes) -> int:
        self.read.append((subject, queue, token))
        return 0

    def on_unsubscribe(self, token: bytes, maximum: int) -> int:
        self.read.append((token, maximum))
        return 0

    def on_interest(self, account: bytes, subject: bytes, queue: bytes, weight: int) -> int:
        self.read.append((account, subject, queue, weight))
        return 0

    def on_no_interest(self, account: bytes, subject: bytes, queue: bytes) -> int:
        self.read.append((account, subject, queue))
        return 0


def read(line: bytes) -> tuple[object, ...]:
    ops = Ops()
    assert RouteOpParser(ops).parse(bytearray(line), 0, len(line)) == len(line)
    return ops.read[0]


@given(words, words | st.just(b""), words, st.integers(1, 10**9 - 1))
def test_interest_reads_back_in_both_dialects(account: bytes, queue: bytes, token: bytes, number: int) -> None:
    weight = number if queue else 0
    assert read(route_lines.subscribe_v1(account, queue, token)) == (account, queue, token)
    assert read(route_lines.unsubscribe_v1(token)) == (token, 0)
    assert read(route_lines.interest_v2(account, token, queue, weight)) == (account, token, queue, weight)
    assert read(route_lines.no_interest_v2(account, token, queue)) == (account, token, queue)


def test_lines_are_those_that_real_servers_write() -> None:
    v1 = b"".join(streams("routes_v1_gnatsd.txt", 1).values())
    v2 = b"".join(streams("routes_v2_nats_server.txt", 1).values())
    assert route_lines.subscribe_v1(b"foo", b"", b"RSID:3:1") in v1
    assert route_lines.subscribe_v1(b"work", b"wkrs", b"QRSID:4:9") in v1
    assert route_lines.interest_v2(b"$G", b"work", b"wkrs", 2) in v2
    assert route_lines.no_interest_v2(b"$G", b"foo.>") in v2


def test_documents_of_real_servers_are_read() -> None:
    for file in ("routes_v1_gnatsd.txt", "routes_v2_nats_server.txt"):
        opening = streams(file, 1)[1, "B->A"].split(b"\r\n")
        connect = route_lines.decode_route_connect(opening[0].removeprefix(b"CONNECT "))
        info = route_lines.decode_route_info(opening[1].removeprefix(b"INFO "))
        assert connect.name == info.server_id != ""
        assert info.port > 0


@given(st.binary(max_size=30))
def test_documents_that_cannot_be_read_are_a_fault_of_the_peer(json: bytes) -> None:
    for decode in (route_lines.decode_route_info, route_lines.decode_route_connect):
        try:
            decode(json)
        except RemoteProtocolError:
            continue


def test_refused_connect_does_not_quote_a_password() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        route_lines.decode_route_connect(b'{"pass":"s3cret","name":7}')
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(caught.value.__cause__)


def test_documents_read_back() -> None:
    info = route_lines.RouteInfo(server_id="A", port=7, headers=True, connect_urls=("127.0.0.1:4222",), cluster="hw")
    connect = route_lines.RouteConnect(name="A", user="u", password="p", cluster="hw", headers=True)
    assert route_lines.decode_route_info(route_lines.encode_route_info(info)[5:]) == info
    assert route_lines.decode_route_connect(route_lines.encode_route_connect(connect)[8:]) == connect
