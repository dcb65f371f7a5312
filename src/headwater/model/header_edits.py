"""Changes to raw header blocks without parsing them: lines added, headers removed or replaced.

The broker adds its own headers to messages of clients. The rest of the block stays byte for byte, valid or not.
"""

_VERSION_LINE = b"NATS/1.0\r\n"


def with_lines(block: bytes, *lines: bytes) -> bytes:
    """`block` with lines (without line ends) after its own. An empty block becomes one with these lines alone. A last line
    without its end gets one: our first line would be a part of it, and not be found again."""
    own = block.removesuffix(b"\r\n") or _VERSION_LINE
    return b"%b%b%b\r\n\r\n" % (own, b"" if own.endswith(b"\r\n") else b"\r\n", b"\r\n".join(lines))


def without_header(block: bytes, name: bytes) -> bytes:
    """`block` without the lines of one header; `name` is matched exactly."""
    if name not in block:
        return block
    return b"\r\n".join(line for line in block.split(b"\r\n") if not line.startswith(name + b":"))


def with_header(block: bytes, name: bytes, value: bytes, *, in_place: bool = False) -> bytes:
    """`block` with `value` as the only one under `name`: after all others, or at the place of the first one (`in_place`).
    Bytes that are no header block are replaced by a block with this header alone."""
    lines = block.split(b"\r\n")
    if not lines[0].startswith(b"NATS/1.0"):
        lines = [b"NATS/1.0"]
    kept = [line for line in lines if line and not line.startswith(name + b":")]
    places = [at for at, line in enumerate(lines) if line.startswith(name + b":")]
    kept.insert(places[0] if in_place and places else len(kept), b"%b: %b" % (name, value))
    return b"\r\n".join([*kept, b"", b""])
