"""The log of `-V`: every op of every client, in nats-server's format, without credentials.

    [TRC] 127.0.0.1:40138 - cid:5 - "$G/user:a" - <<- [PUB a.1 2]          from the client
    [TRC] 127.0.0.1:40138 - cid:5 - "$G/user:a" - <<- MSG_PAYLOAD: ["hi"]
    [TRC] 127.0.0.1:40138 - cid:5 - "$G/user:a" - ->> [MSG a.1 1 2]        to the client

A splitter, which knows only where an op ends, parses all bytes a second time: tracing is slow, and costs nothing when
it is off. `Settings` apply to all clients of the process. Clients of the system account are traced only with `system`.
"""

import json
import logging
import re
from typing import TYPE_CHECKING, Any, Protocol

from headwater.exchange.client_state import Membership
from headwater.options.broker import TRACE_LEVEL, TRACE_LOGGER

if TYPE_CHECKING:
    from headwater.net.link import Link

LONGEST_LINE = 8192  # bytes of an op; the rest is not logged

logger = logging.getLogger(TRACE_LOGGER)

_SECRETS = {"pass", "auth_token", "jwt", "sig"}
_SIZED = re.compile(rb"(?:H?PUB|H?MSG)[ \t]", re.IGNORECASE)


class Settings:
    """`most`: bytes of a payload to log, 0 for all. `system`: also trace clients of the system account."""

    most = 0
    system = False


class Splitter:
    """Cuts a stream of bytes into ops: control lines and payloads."""

    def __init__(self) -> None:
        self._line = b""
        self._left = 0  # missing bytes of a payload and its CRLF
        self._payload = b""

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        """The ops that end in `data`: ("op", line) or ("payload", bytes)."""
        found: list[tuple[str, bytes]] = []
        position = 0
        while position < len(data):
            if self._left:
                piece = data[position : position + self._left]
                position += len(piece)
                self._left -= len(piece)
                self._payload += piece
                if not self._left:
                    found.append(("payload", self._payload[:-2]))
                    self._payload = b""
                continue
            end = data.find(b"\n", position)
            if end < 0:
                self._line += data[position:]
                break
            line, self._line = (self._line + data[position:end]).rstrip(b"\r"), b""
            position = end + 1
            found.append(("op", line))
            self._left = _size_of(line)
        return found


def _size_of(line: bytes) -> int:
    """The size of the payload after a line, with its CRLF; 0 without a payload."""
    last = line.split()[-1:]
    if not _SIZED.match(line) or not last[0].isdigit() or len(last[0]) > 9:
        return 0
    return int(last[0]) + 2


def shown(line: bytes) -> str:
    """The text of an op for the log."""
    if line[:7].upper() == b"CONNECT":
        return f"CONNECT {_redacted(line[7:].strip())}"
    verb, space, rest = line[:LONGEST_LINE].partition(b" ")
    return (verb.upper() + space + rest).decode("utf-8", "surrogateescape")


def _redacted(document: bytes) -> str:
    """The JSON of a CONNECT without credentials; nothing of it if it is not an object."""
    try:
        found: Any = json.loads(document)
    except (ValueError, RecursionError):
        return "[REDACTED]"
    if not isinstance(found, dict):
        return "[REDACTED]"
    return json.dumps({name: "[REDACTED]" if name.lower() in _SECRETS else value for name, value in found.items()})


class Traced(Protocol):
    """The attributes of a client that a trace shows; a session has them."""

    client_id: int
    membership: Membership


class Tracer:
    """The tracer of one client. It sits between the session and its link, so it sees what is written."""

    def __init__(self, session: Traced, link: "Link") -> None:
        self._session = session
        self._link = link
        self._received = Splitter()
        self._sent = Splitter()
        self._seen = 0  # bytes in the output that have been logged already

    def received(self, data: bytes) -> None:
        """Log the ops that the client has sent."""
        self._log("<<-", self._received.feed(data))

    def _log(self, arrow: str, ops: list[tuple[str, bytes]]) -> None:
        session = self._session
        account = session.membership.account
        if account is not None and account.is_system and not Settings.system:
            return
        peer = f"{self._link.peer} - cid:{session.client_id}"
        if account is not None and session.membership.identity.user:
            peer += f' - "{account.name}/user:{session.membership.identity.user}"'
        for kind, data in ops:
            if kind == "op":
                logger.log(TRACE_LEVEL, "%s - %s [%s]", peer, arrow, shown(data))
            elif data:
                cut = data[: Settings.most] if Settings.most else data
                text = cut.decode("utf-8", "backslashreplace") + ("..." if len(cut) < len(data) else "")
                logger.log(TRACE_LEVEL, "%s - %s MSG_PAYLOAD: [%s]", peer, arrow, json.dumps(text, ensure_ascii=False))

    # ── the part of a link that an outlet needs ──

    def flush(self) -> None:
        """Log new output, and write it."""
        self.look()
        self._link.flush()
        self._seen = len(self._link.output)

    def look(self) -> None:
        """Log new output."""
        output = self._link.output
        self._log("->>", self._sent.feed(bytes(output.data[output.head + self._seen : output.size])))
        self._seen = len(output)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._link

    def __hash__(self) -> int:
        return hash(self._link)
