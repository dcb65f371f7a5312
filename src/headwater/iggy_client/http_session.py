"""The client over Iggy's HTTP interface: the same methods, each command a request with JSON.

    Client ─▶ HttpClient: sends and polls as JSON ─▶ HttpSession: log in, bearer token, errors ─▶ net.http_client

There is no session to lose: a request without an answer fails with ConnectionClosed, and a read-only one is repeated
once. An expired token (after an hour, or a restart of the server) is renewed by logging in again. Groups cannot be
joined over HTTP, as with Apache's client: feature_unavailable.
"""

import json
from collections.abc import Sequence
from typing import Any

from headwater.errors import ConnectionClosed, EnvironmentProblem, IggyError
from headwater.iggy_client.client import Client
from headwater.iggy_client.connection import Read
from headwater.iggy_client.http_requests import (
    HttpRequest,
    login_request,
    poll_request,
    request_of,
    send_request,
    snapshot_request,
)
from headwater.iggy_client.management import Name
from headwater.iggy_client.messages import Polled
from headwater.iggy_client.options import Options
from headwater.iggy_client.requests import login_of
from headwater.iggy_client.session import Session
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Code, Command, Message
from headwater.iggy_wire.error_numbers import NUMBERS, refusal
from headwater.iggy_wire.identifiers import Consumer, Identifier, Partitioning, PollingStrategy
from headwater.iggy_wire.message_codec import check_messages
from headwater.iggy_wire.reply_codec import SentView

NOT_FOUND, UNAUTHORIZED, FIRST_ERROR = 404, 401, 400


class HttpSession(Session):
    """See the head of this module. Made by `connect_http`."""

    def __init__(self, options: Options) -> None:
        try:
            from headwater.net.http_client import HttpConnections
        except ImportError as error:
            raise EnvironmentProblem("iggy+http:// needs h11", hint="pip install 'headwater[iggy]'") from error
        super().__init__(options)
        tls = options.context()
        self._http = HttpConnections(options.host, options.port, options.timeout, tls, options.server_name)
        self._token = ""

    @property
    def is_connected(self) -> bool:
        return self._over is None

    async def start(self, log_in: bool) -> None:
        """Logs in, or pings."""
        if log_in:
            await self.log_in(login_of(self.options.username, self.options.password, self.options.token))
        else:
            await self.execute(c.Ping())

    async def log_in(self, login: c.Login | c.LoginWithToken) -> None:
        self.user_id, self._token = await self._ask(login_request(login))
        self._login = login

    async def log_out(self) -> None:
        await self.execute(c.Logout())
        self._login, self._token = None, ""

    async def execute(self, command: Command) -> Any:
        return await self.ask(request_of(command))

    async def request(self, code: Code, pieces: tuple[bytes | bytearray, ...], read: Read | None = None) -> Any:
        raise refusal("feature_unavailable", f"{code.name.lower()} cannot be sent as bytes over HTTP")

    async def close(self) -> None:
        self._over = self._over or ConnectionClosed("the client was closed")
        await self._http.close()

    async def ask(self, request: HttpRequest) -> Any:
        """Send a request; returns the result of its `read`, or the bytes of the answer. Raises IggyError,
        TransportError."""
        try:
            return await self._ask(request)
        except ConnectionClosed:
            if self._over is not None or request.method != "GET":
                raise
            return await self._ask(request)
        except IggyError as error:
            if self._login is None or error.number != NUMBERS["unauthenticated"]:
                raise
            await self.log_in(self._login)  # a token's time is over; nothing was carried out
            return await self._ask(request)

    async def _ask(self, request: HttpRequest) -> Any:
        if self._over is not None:
            raise self._over
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        body = b""
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(request.body).encode()
        status, answer = await self._http.ask(request.method, request.target, headers, body)
        if status == NOT_FOUND and request.may_miss:
            return None
        if status >= FIRST_ERROR:
            raise _refused(status, answer)
        return answer if request.read is None else request.read(_json(answer))


def _json(answer: bytes) -> Any:
    if not answer:
        return {}
    try:
        return json.loads(answer)
    except ValueError as error:
        raise refusal("invalid_format", f"the server's answer is no JSON: {error}") from None


def _refused(status: int, answer: bytes) -> IggyError:
    try:
        document = json.loads(answer)
        return IggyError(str(document["code"]), int(document["id"]), str(document["reason"]), value=status)
    except (ValueError, TypeError, KeyError):
        name = {UNAUTHORIZED: "unauthenticated", NOT_FOUND: "resource_not_found"}.get(status, "http_response_error")
        return refusal(name, f"HTTP {status}: {answer[:200].decode(errors='replace')}", status)


class HttpClient(Client):
    """As `Client`. A message's `origin_timestamp` does not travel; `SentView.base_offset` is -1 where a server does not say
    it."""

    def __init__(self, session: HttpSession) -> None:
        super().__init__(session)
        self._http = session

    async def send(
        self, stream: Name, topic: Name, batch: Sequence[Message], partitioning: Partitioning | int | None = None
    ) -> SentView:
        messages = check_messages(batch)
        where = await self._resolve(stream, topic, partitioning)
        try:
            sent: SentView = await self._http.ask(send_request(Identifier(stream), Identifier(topic), where, messages))
        except IggyError as error:
            self._forget_after(error, stream, topic)
            raise
        return sent

    async def poll_as(
        self,
        stream: Name,
        topic: Name,
        partition: int,
        consumer: Consumer | None = None,
        strategy: PollingStrategy | None = None,
        count: int = 1000,
        auto_commit: bool = False,
    ) -> Polled:
        reader, where = consumer or Consumer.single(), strategy or PollingStrategy.next()
        command = c.PollMessages(reader, Identifier(stream), Identifier(topic), partition, where, count, auto_commit)
        return Polled(*await self._http.ask(poll_request(command)))

    async def snapshot(self, compression: int = 2, types: Sequence[int] = (100,)) -> bytes:
        archive: bytes = await self._http.ask(snapshot_request(compression, types))
        return archive


async def connect_http(options: Options, log_in: bool) -> HttpClient:
    """As `client.connect`, over HTTP."""
    session = HttpSession(options)
    try:
        await session.start(log_in)
    except BaseException:
        await session.close()
        raise
    return HttpClient(session)
