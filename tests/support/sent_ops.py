"""What a client has written, taken apart without any of our code."""

from typing import NamedTuple


class SentOp(NamedTuple):
    """A PUB or HPUB."""

    subject: bytes
    reply: bytes
    block: bytes
    payload: bytes


def read_ops(wire: bytes) -> list[SentOp]:
    """Every op of a text that holds nothing but PUB and HPUB."""
    ops = []
    while wire:
        line, _, rest = wire.partition(b"\r\n")
        verb, subject, *arguments = line.split(b" ")
        size = int(arguments[-1])
        header_size = int(arguments[-2]) if verb == b"HPUB" else 0
        replies = arguments[: -2 if verb == b"HPUB" else -1]
        assert verb in (b"PUB", b"HPUB"), line
        assert rest[size : size + 2] == b"\r\n", line
        ops.append(SentOp(subject, b"".join(replies), rest[:header_size], rest[header_size:size]))
        wire = rest[size + 2 :]
    return ops
