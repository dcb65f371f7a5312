"""The WebSocket layer without a socket: requests, frames in any chunking, and arbitrary input.

Over TCP and compared with nats-server: tests/server/test_reference_websocket.py.
"""

from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.websocket_wire import ACCEPT, CLOSE, COMPRESSION, KEY, PING, deflated, frame, upgrade_request

from headwater.errors import TransportError
from headwater.net.websocket import WebSocketLayer, WebSocketServer, accept_key, judge_request, websocket_of

PLAIN = WebSocketServer(max_message=1000)
PACKED = WebSocketServer(compression=True, max_message=1000)
HEADERS = {
    "host": "localhost",
    "upgrade": "WebSocket",
    "connection": "keep-alive, Upgrade",
    "sec-websocket-version": "13",
    "sec-websocket-key": KEY.decode(),
}


def opened(settings: WebSocketServer, *headers: bytes) -> WebSocketLayer:
    layer = WebSocketLayer(settings)
    layer.feed(memoryview(upgrade_request(*headers)))
    assert layer.ready
    assert layer.take().startswith(b"HTTP/1.1 101")
    return layer


def read_all(layer: WebSocketLayer) -> bytes:
    space, found = bytearray(7), b""
    while size := layer.read_into(memoryview(space)):
        found += space[:size]
    return found


def test_the_key_is_answered_as_the_rfc_does() -> None:
    assert accept_key(KEY.decode()) == ACCEPT.decode()


def test_a_request_is_taken_whatever_the_case_of_its_words() -> None:
    assert judge_request("GET", "/any/path?x", HEADERS, PLAIN)[0] is HTTPStatus.SWITCHING_PROTOCOLS


@pytest.mark.parametrize("name", HEADERS)
def test_a_request_that_lacks_one_of_its_headers_is_refused(name: str) -> None:
    headers = {key: value for key, value in HEADERS.items() if key != name}
    assert judge_request("GET", "/", headers, PLAIN)[0] is HTTPStatus.BAD_REQUEST


@given(st.binary(max_size=300), st.lists(st.integers(0, 3000), max_size=10))
def test_any_cut_of_request_and_frames_gives_the_same_bytes(payload: bytes, cuts: list[int]) -> None:
    wire = (
        upgrade_request() + frame(payload[:50], fin=False) + frame(b"p", PING) + frame(payload[50:], 0) + frame(b"end")
    )
    layer, start, found = WebSocketLayer(PLAIN), 0, b""
    for cut in [*sorted(cuts), len(wire)]:
        if wire[start:cut]:
            layer.feed(memoryview(wire[start:cut]))
            found += read_all(layer)
        start = max(start, cut)
    assert found == payload + b"end"
    assert layer.take().endswith(b"\x8a\x01p")


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60), st.builds(frame, st.binary(max_size=40), st.integers(0, 15), rsv=st.integers(0, 7))
        )
    )
)
def test_any_bytes_are_read_or_refused_with_a_transport_error(pieces: list[bytes]) -> None:
    for settings in (PLAIN, PACKED):
        layer = opened(settings, COMPRESSION)
        try:
            for piece in filter(None, pieces):
                layer.feed(memoryview(piece))
                assert len(read_all(layer)) <= settings.max_message + sum(map(len, pieces))
        except TransportError:
            layer.finish()
        assert isinstance(layer.take(), bytes)


@given(st.binary(max_size=2000))
def test_any_bytes_instead_of_a_request_are_refused_with_a_transport_error(sent: bytes) -> None:
    layer = WebSocketLayer(PLAIN)
    try:
        if sent:
            layer.feed(memoryview(sent))
    except TransportError:
        assert layer.take().startswith(b"HTTP/1.1 4")
    assert not layer.ready


def test_what_a_message_may_decompress_to_is_bounded() -> None:
    layer = opened(PACKED, COMPRESSION)
    layer.feed(memoryview(frame(deflated(bytes(1000)), rsv=4)))
    assert read_all(layer) == bytes(1000)
    with pytest.raises(TransportError):
        layer.feed(memoryview(frame(deflated(bytes(1001)), rsv=4)))
    assert layer.take()[2:4] == (1009).to_bytes(2, "big")


def test_what_is_written_is_one_frame_compressed_when_it_pays() -> None:
    layer = opened(PACKED, COMPRESSION)
    layer.write(memoryview(b"short"))
    assert layer.take() == b"\x82\x05short"
    layer.write(memoryview(bytes(10_000)))
    packed = layer.take()
    assert packed[0] == 0xC2
    assert len(packed) < 100


def test_close_is_sent_once() -> None:
    layer = opened(PLAIN)
    layer.feed(memoryview(frame(b"\x03\xe8bye", CLOSE)))
    assert layer.ended
    assert layer.take() == b"\x88\x05\x03\xe8bye"
    layer.finish()
    assert layer.take() == b""
    assert not layer.ready


def test_cookies_and_the_layer_itself_are_found() -> None:
    layer = opened(PLAIN, b'Cookie: a=1; b="two"; =x\r\n')
    assert layer.cookies == {"a": "1", "b": "two"}
    assert websocket_of(layer) is layer
    assert websocket_of(None) is None
