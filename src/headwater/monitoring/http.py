"""A small HTTP/1.1 server on a link: one request after another, answers made at once.

    Link ──receive──▶ h11 ──Request──▶ respond(path, parameters) ──Response──▶ h11 ──▶ output

h11 implements the protocol; details that it leaves open follow Go's server, as in nats-server. Every method except CONNECT
is answered like GET. A body is read and dropped before the answer; after one above MOST_BODY, or when the client waits for
`100 Continue` before it sends one, the connection is closed. A path that is not clean ("//varz", "/a/../varz") is
redirected. An HTTP/1.0 request is answered as such, and keeps its connection with `Connection: keep-alive`.

A peer has limits (`net.limits`): the size of a request's head, by default a megabyte as in Go, and the time that a request
takes. A peer that exceeds one gets an answer if possible, and is disconnected.

It shares the broker's event loop, so `respond` must be quick, or return an awaitable. Each turn of the loop answers one
request per connection, and the next only once the pending output is below `net.link.HIGH_WATER`: pipelined requests neither
stall other clients nor fill memory.
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from email.utils import formatdate
from html import escape
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

import h11

from headwater.monitoring.parameters import Parameters
from headwater.monitoring.request_target import clean_path, parse_query, split_target
from headwater.net.limits import Limits

if TYPE_CHECKING:
    from headwater.net.link import Link

logger = logging.getLogger(__name__)

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
MOST_BODY = 256 << 10  # bytes of a body read before the answer; Go's limit


class Response(NamedTuple):
    """An answer: its body, status and content type. `more`: the rest of a large body in pieces, for an awaited answer;
    each is written once the peer has read the previous ones. `policy`: a content security policy."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    more: Sequence[bytes] = ()
    policy: str = ""

    @property
    def size(self) -> int:
        """Bytes of the whole body."""
        return len(self.body) + sum(map(len, self.more))


Respond = Callable[[str, Parameters], Response | Awaitable[Response]]


class HttpSession:
    """One connection; the owner of its link. `tasks` holds the answers in progress."""

    def __init__(self, respond: Respond, tasks: "set[asyncio.Task[None]]", limits: Limits) -> None:
        self._respond = respond
        self._tasks = tasks
        self._limits = limits
        self._protocol = self._new_protocol()
        self._link: Link | None = None
        self._request: h11.Request | None = None  # its body is being read
        self._body = 0  # bytes bytes of the body read so far
        self._version = b"1.1"  # of the request that is being answered
        self._method = b"GET"
        self._closes = False  # close the connection after the answer
        self._persists = False  # keep the connection although the request was HTTP/1.0
        self._busy = False  # a request is being answered, or waits for the next turn
        self._turn: asyncio.Handle | None = None
        self._idle: asyncio.TimerHandle | None = None

    def _new_protocol(self) -> h11.Connection:
        return h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.login_bytes or sys.maxsize)

    # ── the link's owner ──

    def attach(self, link: "Link") -> None:
        self._link = link
        self._wait_for_request()

    def receive(self, buffer: bytearray, filled: int) -> int:
        try:
            self._protocol.receive_data(bytes(buffer[:filled]))
        except RuntimeError:  # h11: data after the connection has switched or ended
            self._end()
            return filled
        self._serve()
        return filled

    def lost(self, error: Exception | None) -> None:
        self._stop_waiting()
        if self._turn is not None:
            self._turn.cancel()
        self._link = None

    # ── requests ──

    def _serve(self) -> None:
        """Answer the received requests in order, one at a time."""
        while not self._busy and self._link is not None and not self._link.closing:
            try:
                event = self._protocol.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse(error)
                return
            if event is h11.NEED_DATA:
                return
            if event is h11.PAUSED:
                self._begin_anew()
                self._pause()
            elif isinstance(event, h11.Request):
                self._begin(event)
            elif isinstance(event, h11.Data):
                self._body += len(event.data)
                if self._request is not None and self._body >= MOST_BODY:
                    self._closes = True
                    self._answer(self._request)
            elif isinstance(event, h11.EndOfMessage):
                if self._request is not None:
                    self._answer(self._request)
            elif isinstance(event, h11.ConnectionClosed):
                self._end()
                return

    def _pause(self) -> None:
        """More requests are pending: continue in the next turn of the loop."""
        link = self._link
        if link is None or link.closing:
            return
        self._busy = True
        link.pause_reading()
        drained = link.draining()
        if drained is None:
            self._turn = asyncio.get_running_loop().call_soon(self._go_on)
        else:
            drained.add_done_callback(self._drained)

    def _drained(self, drained: "asyncio.Future[None]") -> None:
        if not drained.cancelled() and drained.exception() is None:
            self._go_on()

    def _go_on(self) -> None:
        self._busy = False
        if self._link is not None and not self._link.closing:
            self._link.resume_reading()
            self._serve()

    def _begin(self, request: h11.Request) -> None:
        """The head of a request has arrived. A valid request is answered once its body has arrived, too."""
        headers: dict[bytes, bytes] = {}
        for name, value in request.headers:
            headers[name] = headers[name] + b"," + value if name in headers else value
        words = {word.strip() for word in headers.get(b"connection", b"").lower().split(b",")}
        expected = headers.get(b"expect", b"").lower()
        self._version, self._method = request.http_version, request.method
        self._closes = b"close" in words
        self._persists = self._version == b"1.0" and b"keep-alive" in words and not self._closes
        self._request, self._body = request, 0
        if not self._version.startswith(b"1."):
            self._reject(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "unsupported protocol version")
        elif expected and expected != b"100-continue":
            self._closes = True
            self._send(Response(b"", HTTPStatus.EXPECTATION_FAILED, ""))
        else:
            has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
            self._closes |= bool(expected) and has_body  # its body, which is not used, may arrive or not
            if self._closes or (self._version == b"1.0" and not self._persists):
                self._answer(request)

    def _answer(self, request: h11.Request) -> None:
        self._request = None
        self._stop_waiting()
        if request.method == b"CONNECT":  # its 200 would make a tunnel of the connection
            self._closes = True
            self._send(_plain(HTTPStatus.METHOD_NOT_ALLOWED))
            return
        if request.target == b"*":
            self._closes = self._closes or request.method != b"OPTIONS"
            self._send(Response(b"", 200 if request.method == b"OPTIONS" else 400, ""))
            return
        try:
            path, query = split_target(request.target)
            parameters = parse_query(query)
        except ValueError:
            self._reject(HTTPStatus.BAD_REQUEST)
            return
        clean = clean_path(path)
        if clean != path:
            self._redirect(f"{clean}?{query}" if query else clean)
            return
        path = unquote(path)
        try:
            answer = self._respond(path, parameters)
        except Exception:
            logger.exception("monitoring_failed path=%r", path)
            self._send(_plain(HTTPStatus.INTERNAL_SERVER_ERROR))
            return
        if isinstance(answer, Response):
            self._send(answer)
            return
        self._busy = True
        if self._link is not None:
            self._link.pause_reading()
        task = asyncio.get_running_loop().create_task(self._finish(answer, path))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, answer: Awaitable[Response], path: str) -> None:
        try:
            response = await answer
        except Exception:
            logger.exception("monitoring_failed path=%r", path)
            response = _plain(HTTPStatus.INTERNAL_SERVER_ERROR)
        if self._link is not None and not self._link.closing:
            if response.more and self._method != b"HEAD":
                await self._send_in_turns(response)
            else:
                self._send(response)
        self._go_on()

    async def _send_in_turns(self, response: Response) -> None:
        """As `_send`, piece by piece. A peer that reads nothing within the time of a request is disconnected."""
        self._send_head(response)
        for piece in (response.body, *response.more):
            self._write(h11.Data(data=piece))
            try:
                async with asyncio.timeout(self._limits.login_seconds or None):
                    if self._link is not None:
                        await self._link.drained()
            except TimeoutError:
                self._give_up()
            except ConnectionError:
                pass
            if self._link is None or self._link.closing:
                return
            await asyncio.sleep(0)
        self._end_answer()

    def _redirect(self, location: str) -> None:
        text = f'<a href="{escape(location)}">Temporary Redirect</a>.\n\n' if self._method in (b"GET", b"HEAD") else ""
        self._send(Response(text.encode(), HTTPStatus.TEMPORARY_REDIRECT, HTML if text else ""), location=location)

    def _send(self, response: Response, *, location: str = "", reason: str = "") -> None:
        """Send the whole answer; then wait for the next request, if the connection stays open."""
        self._send_head(response, location=location, reason=reason)
        self._write(h11.Data(data=b"" if self._method == b"HEAD" else response.body))
        self._end_answer()

    def _send_head(self, response: Response, *, location: str = "", reason: str = "") -> None:
        headers = [
            ("Content-Length", str(response.size)),
            ("Access-Control-Allow-Origin", "*"),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Date", formatdate(usegmt=True)),
        ]
        if response.content_type:
            headers.insert(0, ("Content-Type", response.content_type))
        if location:
            headers.append(("Location", location))
        if response.policy:
            headers.append(("Content-Security-Policy", response.policy))
        if self._closes:
            headers.append(("Connection", "close"))
        phrase = HTTPStatus(response.status).phrase + (f": {reason}" if reason else "")
        self._write(h11.Response(status_code=response.status, headers=headers, reason=phrase))

    def _end_answer(self) -> None:
        self._write(h11.EndOfMessage())
        if self._persists:
            self._renew()
        elif self._protocol.our_state is h11.MUST_CLOSE:
            self._end()
        else:
            self._wait_for_request()

    def _reject(self, status: HTTPStatus, reason: str = "") -> None:
        """Reject an invalid request with Go's error text, and close the connection."""
        text = f"{status.value} {status.phrase}{': ' if reason else ''}{reason}"
        self._closes, self._persists = True, False
        self._send(Response(text.encode(), status, TEXT), reason=reason)

    def _renew(self) -> None:
        """Start a new h11 connection, because h11 closes every HTTP/1.0 connection, and pass it the bytes after the
        request."""
        waiting, _ = self._protocol.trailing_data
        self._protocol = self._new_protocol()
        self._wait_for_request()
        if waiting:
            self._protocol.receive_data(waiting)
            if not self._busy:
                self._pause()

    def _begin_anew(self) -> None:
        """A request is complete on both sides: continue with the next one."""
        if self._protocol.our_state is h11.DONE and self._protocol.their_state is h11.DONE:
            self._protocol.start_next_cycle()
        else:
            self._end()

    def _refuse(self, error: h11.RemoteProtocolError) -> None:
        if self._protocol.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._version, self._method = b"1.1", b"GET"
            missing = "missing required Host header" if str(error) == "Missing mandatory Host: header" else ""
            try:
                self._reject(HTTPStatus(error.error_status_hint), missing)
            except h11.LocalProtocolError:
                logger.debug("monitoring_refused reason=%s", error)
        self._end()

    def _write(self, event: h11.Event) -> None:
        data = self._protocol.send(event)
        if data and isinstance(event, h11.Response) and self._version == b"1.0":
            data = data.replace(b"HTTP/1.1", b"HTTP/1.0", 1)  # h11 writes 1.1 only, and Connection: close
            if self._persists:
                data = data.replace(b"Connection: close", b"Connection: keep-alive", 1)
        if data and self._link is not None:
            self._link.output.append(data)
            self._link.flush_soon()

    def _wait_for_request(self) -> None:
        self._stop_waiting()
        if self._limits.login_seconds:
            self._idle = asyncio.get_running_loop().call_later(self._limits.login_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _give_up(self) -> None:
        """The peer neither sends nor reads: close the connection."""
        if self._link is not None and self._link.pending:
            self._link.abort()
        self._end()

    def _end(self) -> None:
        self._stop_waiting()
        if self._link is not None:
            self._link.close()


def _plain(status: HTTPStatus) -> Response:
    return Response(f"{status.value} {status.phrase}\n".encode(), status.value, TEXT)
