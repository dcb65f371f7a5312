"""Columns as the decoder hands them over, from header blocks and payloads."""

from collections.abc import Sequence

from headwater.wire.columns import ColumnDecoder, Columns
from headwater.wire.server_ops import ServerOpParser

NS = 1_700_000_000_123_456_789


def decoded(blocks: list[bytes], *, with_map: bool = True, with_raw: bool = True) -> Columns:
    messages = [(block, b"p%d" % number) for number, block in enumerate(blocks, 1)]
    return columns_of_messages(messages, with_map=with_map, with_raw=with_raw)


def columns_of_messages(
    messages: Sequence[tuple[bytes, bytes]], *, with_map: bool = False, with_raw: bool = True
) -> Columns:
    """Columns of messages that are a header block and a payload each."""
    decoder = ColumnDecoder(1, 1, 1 << 40, with_map=with_map, with_raw=with_raw)
    wire = bytearray()
    for number, (block, payload) in enumerate(messages, 1):
        reply = b"$JS.ACK.S.c.1.%d.%d.%d.9" % (number, number, NS + number)
        sizes = (len(block), len(block) + len(payload))
        head = (
            b"HMSG s.%d 1 %b %d %d" % (number, reply, *sizes)
            if block
            else b"MSG s.%d 1 %b %d" % (number, reply, sizes[1])
        )
        wire += head + b"\r\n" + block + payload + b"\r\n"
    ServerOpParser(decoder).parse(wire, 0, len(wire))
    return decoder.take()
