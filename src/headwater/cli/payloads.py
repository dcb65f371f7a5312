"""Payloads of the command line: bytes come in and go out unchanged; only what a person reads is shortened.

stdin or an argument ─ body_of ─▶ bytes ─▶ the server
the server ─▶ bytes ─┬ plain, header_lines, for a terminal
                     ├ write_raw, for a file or a pipe (--raw)
                     └ json_fields, for a program (--json)

In place of a header block that cannot be read stands the reason; the message is printed: any publisher may send it.
"""

import os
import sys
from typing import Any

from headwater.errors import HeaderError
from headwater.model.headers import Headers
from headwater.model.message import Message


def body_of(argument: str) -> bytes:
    """The payload that an argument stands for: `-` is all of stdin. Text mode would refuse bytes that are not UTF-8, and
    change line ends."""
    return sys.stdin.buffer.read() if argument == "-" else os.fsencode(argument)


def plain(value: Any) -> str:
    """A payload for a terminal: its text, or its length when it is not UTF-8."""
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return f"<{len(value)} bytes>"


def write_raw(value: Any, end: bytes = b"\n") -> None:
    """Write a payload to stdout as it is, whatever its encoding, behind what was printed before."""
    sys.stdout.flush()
    sys.stdout.buffer.write(bytes(value) + end)
    sys.stdout.buffer.flush()


def json_fields(value: Any, name: str = "data") -> dict[str, str]:
    """A payload in JSON: its text under `name`, or base64 under `<name>_base64` when it is not UTF-8, as in CloudEvents."""
    try:
        return {name: bytes(value).decode()}
    except UnicodeDecodeError:
        from binascii import b2a_base64  # here: hardly any payload needs it

        return {f"{name}_base64": b2a_base64(value, newline=False).decode()}


def header_lines(block: bytes) -> list[str]:
    """The headers in a block for a terminal; bytes that are not UTF-8 as `\\udcff`."""
    try:
        pairs = Headers.parse(block).multi_items() if block else []
    except HeaderError as error:
        return [f"(a header block of {len(block)} bytes, which cannot be read: {error})"]
    return [f"{name}: {value}".encode("utf-8", "backslashreplace").decode() for name, value in pairs]


def message_fields(message: Message) -> dict[str, object]:
    """A message in JSON. `headers_error` is there for a header block that cannot be read."""
    fields: dict[str, object] = {"subject": message.subject, "reply": message.reply}
    try:
        fields["headers"] = {name: message.headers.get_all(name) for name in message.headers}
    except HeaderError as error:
        fields |= {"headers": {}, "headers_error": str(error)}
    return {**fields, **json_fields(message.data)}
