"""The functions between header blocks and values: decode, encode, the status alone, and the server's own look-up.

`lookup` works on the raw bytes and agrees with nats-server to the letter, also on blocks that are no valid headers; the
broker uses only it. Programs use `decode_header_block`. The two differ on purpose (the server neither trims the end of a
value nor skips tabs), so a header meant for the server must be written as `encode_header_block` writes it: the exact
name, one space, the value trimmed.
"""

from collections.abc import Callable
from functools import partial

from headwater.errors import ConfigError
from headwater.model.header_syntax import (
    check_strict,
    checked_name,
    checked_value,
    read_pairs,
    read_status,
    version_line,
    write,
)
from headwater.model.headers import Headers, HeaderSource, flat
from headwater.model.status import Status


def decode_header_block(block: bytes, strict: bool = False) -> tuple[Status | None, Headers]:
    """The status of a `NATS/1.0` block and its headers.

    Lenient reading accepts what real senders write (folded lines, empty names, UTF-8 and other bytes in values, bytes
    after the empty line); `strict` is ADR-4 revision 2 with RFC 7230 names. Raises HeaderError with key, byte offset
    and rule, and nothing else, whatever the bytes are.
    """
    return read_status(block), Headers.parse(block, strict)


def parse_status(block: bytes) -> Status | None:
    """The status alone, without parsing the lines after it. Raises HeaderError for a bad version line or status."""
    return read_status(block)


def encode_header_block(
    headers: Headers | HeaderSource, status: Status | None = None, newlines: str = "error", strict: bool = False
) -> bytes:
    """A complete block, also for no headers at all (a publisher sends PUB then, and no block).

    A `Headers` that came from a block and was not changed is written byte for byte, version line included if the status
    is the same too. `newlines="space"` turns CR and LF in values into spaces, as nats.go and nats-py do, where the
    default refuses them; it concerns plain mappings and pairs, because a `Headers` never has one. `strict` writes only
    what strict reading accepts: ASCII without control characters, and no block kept from a lenient sender. Raises
    HeaderError, and ConfigError for another word for `newlines`.
    """
    if newlines not in ("error", "space"):
        raise ConfigError(f"newlines is 'error' or 'space', not {newlines!r}", value=newlines, limit="error, space")
    if isinstance(headers, Headers):
        block = headers.raw
        if strict:
            check_strict(headers.multi_items())
            if block is not None:
                read_pairs(block, strict=True)
        if block is None:
            return write(version_line(status), headers.multi_items())
        if read_status(block) == status:
            return block
        return version_line(status) + block[block.index(b"\n") + 1 :]
    spaces = newlines == "space"
    pairs = [(checked_name(name), checked_value(name, value, spaces)) for name, value in flat(headers)]
    if strict:
        check_strict(pairs)
    return write(version_line(status), pairs)


def lookup(block: bytes, name: bytes) -> bytes | None:
    """The value that nats-server would find under `name`, or None.

    It wants CRLF before the name and a colon after it, skips SP (not HTAB), and takes all up to the next CRLF, or the
    end, untrimmed. It also gives up when two mentions of the name that are no headers lie less than two bytes apart,
    which hides a real header behind them; this function does the same, because it must agree with nats-server.
    """
    length, offset = len(name), 0
    while True:
        at = block.find(name, offset)
        if at < offset + 2:
            return None
        offset = at + length
        if block.startswith(b"\r\n", at - 2) and block.startswith(b":", offset):
            break
    end = block.find(b"\r\n", offset)
    return block[offset + 1 : len(block) if end < 0 else end].lstrip(b" ")


def finder(block: bytes, beginning: bytes) -> Callable[[bytes], bytes | None]:
    """`lookup` in this block, for names that begin so. Where each mention of that is a header's, one walk finds all: a
    search for each of a dozen names took half of what a publish with a TTL costs."""
    found: dict[bytes, bytes] = {}
    at: int = block.find(beginning)
    while at >= 0:
        if at < 2 or not block.startswith(b"\r\n", at - 2):
            return partial(lookup, block)
        end: int = block.find(b"\r\n", at)
        name, colon, value = block[at : len(block) if end < 0 else end].partition(b":")
        if colon and name not in found:
            found[name] = value.lstrip(b" ")
        at = block.find(beginning, at + len(beginning))
    return found.get
