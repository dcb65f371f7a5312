"""A small HTTP/1.1 server on a link: GET and HEAD, one request after another, answers made at once.

    Link ──receive──▶ h11 ──Request──▶ respond(path, parameters) ──Response──▶ h11 ──▶ output

The protocol is h11's. A peer has bounds: 16 KiB of request head (h11's), no body, IDLE_SECONDS of silence; whoever breaks
one gets an answer where there can be one, and the connection ends. It shares the broker's event loop, so `respond` must
be quick; one that needs longer returns an awaitable.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

import h11

from headwater.broker.monitoring.parameters import Parameters

if TYPE_CHECKING:
    from headwater.net.link import Link

logger = logging.getLogger(__name__)

IDLE_SECONDS = 30.0
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
MOST_PARAMETERS = 32


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: its body, status and content type."""

    body: bytes
    status: int = 200
    content_type: str = JSON


Respond = Callable[[str, Parameters], Response | Awaitable[Response]]


class HttpSession:
    """One connection; the owner of its link. `tasks` keeps what is still being answered."""

    def __init__(self, respond: Respond, tasks: "set[asyncio.Task[None]]") -> None:
        self._respond = respond
        self._tasks = tasks
        self._protocol = h11.Connection(h11.SERVER)
        self._link: Link | None = None
        self._head_only = False
        self._busy = False
        self._idle: asyncio.TimerHandle | None = None

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
        self._link = None

    # ── requests ──

    def _serve(self) -> None:
        """Answer what has come, in order; a request that is being answered holds the next ones back."""
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
            elif isinstance(event, h11.Request):
                self._stop_waiting()
                self._answer(event)
            elif isinstance(event, h11.ConnectionClosed):
                self._end()
                return

    def _answer(self, request: h11.Request) -> None:
        self._head_only = request.method == b"HEAD"
        if request.method not in (b"GET", b"HEAD"):
            self._send(_plain(HTTPStatus.METHOD_NOT_ALLOWED))
            return
        try:
            path, parameters = _target(request.target)
        except ValueError:
            self._send(_plain(HTTPStatus.BAD_REQUEST))
            return
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
        task = asyncio.get_running_loop().create_task(self._finish(answer, path))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, answer: Awaitable[Response], path: str) -> None:
        try:
            response = await answer
        except Exception:
            logger.exception("monitoring_failed path=%r", path)
            response = _plain(HTTPStatus.INTERNAL_SERVER_ERROR)
        self._busy = False
        if self._link is not None and not self._link.closing:
            self._send(response)
            self._serve()

    def _send(self, response: Response) -> None:
        """The whole answer; then wait for the next request."""
        headers = [
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            ("Access-Control-Allow-Origin", "*"),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ]
        reason = HTTPStatus(response.status).phrase
        self._write(h11.Response(status_code=response.status, headers=headers, reason=reason))
        self._write(h11.Data(data=b"" if self._head_only else response.body))
        self._write(h11.EndOfMessage())
        if self._protocol.our_state is h11.MUST_CLOSE:
            self._end()
        else:
            self._wait_for_request()

    def _begin_anew(self) -> None:
        """Both sides are done with a request: the next one may follow on this connection."""
        if self._protocol.our_state is h11.DONE and self._protocol.their_state is h11.DONE:
            self._protocol.start_next_cycle()
        else:
            self._end()

    def _refuse(self, error: h11.RemoteProtocolError) -> None:
        if self._protocol.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._head_only = False
            try:
                self._send(_plain(HTTPStatus(error.error_status_hint)))
            except h11.LocalProtocolError:
                logger.debug("monitoring_refused reason=%s", error)
        self._end()

    def _write(self, event: h11.Event) -> None:
        data = self._protocol.send(event)
        if data and self._link is not None:
            self._link.output.append(data)
            self._link.flush_soon()

    def _wait_for_request(self) -> None:
        self._stop_waiting()
        self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end)

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _end(self) -> None:
        self._stop_waiting()
        if self._link is not None:
            self._link.close()


def _target(target: bytes) -> tuple[str, Parameters]:
    """Path and parameters of a request's target; of a parameter that comes twice the first counts, as in Go."""
    text = target.decode("ascii")
    # "//varz" is a path that nobody has, not a host.
    parts = urlsplit(text if not text.startswith("/") else f"http://host{text}")
    parameters: Parameters = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS):
        parameters.setdefault(name, value)
    return unquote(parts.path), parameters


def _plain(status: HTTPStatus) -> Response:
    return Response(f"{status.value} {status.phrase}\n".encode(), status.value, TEXT)
