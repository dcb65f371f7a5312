"""The header Nats-Request-Info: the sender of a request from another account. Pure.

    {"acc":"B","rtt":323686}                                                               rtt in ns
    {"start":…,"host":…,"id":…,"acc":…,"user":…,"name":…,"rtt":…,"server":…,"kind":"Client",…}   with `share`

Only the broker writes this header: one sent by a client is removed, in any case, and an invalid header block is
replaced.
"""

REQUEST_INFO = b"Nats-Request-Info"
_VERSION = b"NATS/1.0"


def with_request_info(header_block: bytes, info: bytes) -> bytes:
    """`header_block` (b"" for none) with `info`, a JSON document, as its only Nats-Request-Info."""
    lines = header_block.split(b"\r\n")
    if not header_block.endswith(b"\r\n\r\n") or not lines[0].startswith(_VERSION):
        lines = [_VERSION]
    kept = [line for line in lines if line and not _is_request_info(line)]
    return b"\r\n".join([*kept, REQUEST_INFO + b": " + info, b"", b""])


def without_request_info(header_block: bytes) -> bytes:
    """`header_block` without Nats-Request-Info, for a stream, which does not store the sender; b"" if no other header
    remains.
    """
    if REQUEST_INFO not in header_block:
        return header_block
    kept = [line for line in header_block.split(b"\r\n") if not line.startswith(REQUEST_INFO + b":")]
    return b"\r\n".join(kept) if any(kept[1:]) else b""


def _is_request_info(line: bytes) -> bool:
    return line.partition(b":")[0].strip().lower() == b"nats-request-info"
