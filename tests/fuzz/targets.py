"""What is fuzzed: one function for each parser that strangers reach, which raises only when something is wrong.

Beside "no exception but the one that it documents" each holds a property: any cut of the bytes gives the same calls, what
was read and written is read again as the same. `./hw bench fuzz` runs them under atheris (coverage-guided);
tests/fuzz/test_targets.py runs them over the corpus, without it.
"""

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from headwater.cloudevents.batch import from_batch
from headwater.cloudevents.json_format import from_json, to_json
from headwater.cloudevents.nats_binding import NATSMessage, from_nats, to_binary
from headwater.errors import HeadwaterError, TransportError
from headwater.iggy_wire import classic_frames, command_codec, vsr_frames
from headwater.iggy_wire.eras import Era
from headwater.model.header_block import decode_header_block, encode_header_block
from headwater.net.websocket import WebSocketLayer, WebSocketServer
from headwater.server.config.schema import load
from headwater.wire.client_ops import ClientOpParser
from headwater.wire.server_ops import ServerOpParser

Target = Callable[[bytes], None]
Call = tuple[object, ...]
CLIENT_LINE, SERVER_LINE, MAX_PAYLOAD = 64, 256, 1 << 20  # bytes: short lines, so that an input has one too long
TESTS = Path(__file__).parents[1]
ERAS = list(Era)


def _tests(path: str) -> ModuleType:
    """Another test module, for its recorders."""
    spec = importlib.util.spec_from_file_location("fuzz_" + path.replace("/", "_"), TESTS / f"{path}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_client, _server, _route = (_tests(f"wire/test_{side}_ops") for side in ("client", "server", "route"))
_websocket: Any = _tests("support/websocket_wire")


def _halves(data: bytes, at: int) -> tuple[bytes, bytes]:
    """`data`, cut at a place that `at` chooses: inside whenever it has an inside."""
    at %= len(data) + 1
    return data[:at], data[at:]


def _calls(parser_of: Callable[[Any], Any], recorder: Any, first: bytes, second: bytes) -> list[Call]:
    """The calls of a parser, which writes to `recorder`, for bytes that arrive in two pieces."""
    parser = parser_of(recorder)
    waiting = bytearray(first)
    used = parser.parse(waiting, 0, len(waiting))
    assert 0 <= used <= len(waiting)
    if second:
        waiting = waiting[used:] + second
        assert 0 <= parser.parse(waiting, 0, len(waiting)) <= len(waiting)
    calls: list[Call] = recorder.calls
    return calls


def _client_calls(first: bytes, second: bytes = b"") -> list[Call]:
    return _calls(
        lambda recorder: ClientOpParser(recorder, CLIENT_LINE, MAX_PAYLOAD), _client.Recorder(), first, second
    )


def _server_calls(first: bytes, second: bytes = b"") -> list[Call]:
    new_parser = partial(ServerOpParser, max_control_line=SERVER_LINE)
    return _calls(new_parser, _server.Recorder(), first, second)


def client_ops(data: bytes) -> None:
    """What a client says to the broker."""
    rest = data[1:]
    first, second = _halves(rest, data[0] if data else 0)
    assert _client_calls(first, second) == _client_calls(rest)


def server_ops(data: bytes) -> None:
    """What a server says to the client."""
    rest = data[1:]
    first, second = _halves(rest, data[0] if data else 0)
    assert _server_calls(first, second) == _server_calls(rest)


def route_ops(data: bytes) -> None:
    """What a peer says, in each dialect and in none yet."""
    head, rest = data[:2], data[2:]
    dialect = head[0] % 3 if head else 0
    first, second = _halves(rest, head[1] if len(head) == 2 else 0)
    assert _route.calls_for([first, second], dialect) == _route.calls_for([rest], dialect)


def iggy_frames(data: bytes) -> None:
    """Frames of both framings, and the body of a command in every era."""
    buffer = bytearray(data)
    for find in (vsr_frames.find_request, classic_frames.find_request):
        try:
            found: Any = find(buffer, 0, len(buffer))
        except HeadwaterError:
            continue
        if not isinstance(found, int):
            assert 0 <= found.start <= found.end <= len(buffer)
    if len(data) > 2:
        code, era, body = int.from_bytes(data[:2], "little"), ERAS[data[2] % len(ERAS)], data[3:]
        try:
            command = command_codec.decode(code, body, era)
        except HeadwaterError:
            return
        try:
            again = command_codec.encode(command, era)
        except HeadwaterError:  # a login of before has no secret, which one of today must have
            assert getattr(command, "secret", None) == b""
            return
        if again[0] == code:  # a login of today has a body of its own
            assert command_codec.decode(*again, era) == command


def headers(data: bytes) -> None:
    """A header block: read, written and read again."""
    for strict in (True, False):
        try:
            status, found = decode_header_block(data, strict)
            pairs = found.multi_items()
        except HeadwaterError:
            continue
        for name, value in pairs[:8]:
            assert found.get(name) is not None
            assert value in found.get_all(name)
        found.append("x", "y")
        again_status, again = decode_header_block(encode_header_block(found, status=status) or b"NATS/1.0\r\n\r\n")
        assert again.multi_items() == [*pairs, ("x", "y")]
        assert again_status == status


def cloud_events(data: bytes) -> None:
    """JSON, a batch of it, and a NATS message."""
    for strict in (True, False):
        try:
            event = from_json(data, strict)
        except HeadwaterError:
            event = None
        if event is not None:
            assert from_json(to_json(event)) == event
        try:
            from_batch(data, strict)
        except HeadwaterError:
            pass
        block, _, payload = data.partition(b"\r\n\r\n")
        try:
            found = from_nats(NATSMessage(decode_header_block(block + b"\r\n\r\n")[1], payload), strict)
            again = to_binary(found)
        except HeadwaterError:
            continue
        assert from_nats(again) == found


def config(data: bytes) -> None:
    """A configuration file."""
    text = data.decode("utf-8", "replace")
    try:
        load("x.conf", lambda path: text if path.endswith("x.conf") else "a: 1", {"HOME": "/"}).finish()
    except HeadwaterError:
        return


def websocket(data: bytes) -> None:
    """The request, or frames behind one, plain and compressed."""
    settings = WebSocketServer(compression=bool(data[:1] and data[0] & 1), max_message=1000)
    layer = WebSocketLayer(settings)
    rest = data[1:]
    try:
        if data[:1] and data[0] & 2:
            layer.feed(memoryview(_websocket.upgrade_request(_websocket.COMPRESSION)))
        if rest:
            layer.feed(memoryview(rest))
        space = bytearray(4096)
        while layer.read_into(memoryview(space)):
            pass
    except TransportError:
        layer.finish()
    assert isinstance(layer.take(), bytes)


TARGETS: dict[str, Target] = {
    "client": client_ops,
    "server": server_ops,
    "route": route_ops,
    "iggy": iggy_frames,
    "headers": headers,
    "cloudevents": cloud_events,
    "config": config,
    "websocket": websocket,
}
