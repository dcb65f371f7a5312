"""The HTTP JSON interface: the same service, with a bearer token in place of a connection's user.

`POST /users/login` returns a token, required by every other request but `/` and `/ping`. Tokens are kept in memory for
an hour; a restart ends them. A listener for the seed (`seed=True`) requires no login and answers in the seed's format.

Starlette routes and uvicorn serves; both are of the extra `iggy`, imported here alone.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from itertools import count
from typing import Any, Final
from urllib.parse import unquote
from uuid import UUID

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from headwater.errors import HeaderError, HeadwaterError, StorageError
from headwater.iggy import http_commands
from headwater.iggy.clients import HTTP, Client
from headwater.iggy.deferred import Waits, poll_deferred
from headwater.iggy.dispatch import execute
from headwater.iggy.http_commands import ACTIVE, identifier_of, topic_of, whole_number
from headwater.iggy.message_commands import Found, poll, poll_in_turns, send
from headwater.iggy.partition import Batch
from headwater.iggy.service import Service
from headwater.iggy_wire import commands as c
from headwater.iggy_wire import http_json
from headwater.iggy_wire.batches import build
from headwater.iggy_wire.commands import Command
from headwater.iggy_wire.eras import Era, of_crate
from headwater.iggy_wire.error_numbers import as_refusal, of_today, refusal, seed_number
from headwater.iggy_wire.http_json import field
from headwater.iggy_wire.reply_codec import Context
from headwater.iggy_wire.seed_codec import from_batches
from headwater.net.http_server import HttpServer, serve
from headwater.net.limits import DEFAULTS, IGGY_HTTP, Limits

logger = logging.getLogger(__name__)

TOKEN_SECONDS: Final = 3600
MAX_BODY: Final = 64 << 20
MOST_WAITS: Final = 1024  # polls that wait for messages
THREAD_BYTES: Final = 1 << 18  # size of a poll above which a thread encodes the JSON
_STATUSES: Final = {
    "unauthenticated": 401,
    "invalid_access_token": 401,
    "invalid_credentials": 401,
    "invalid_personal_access_token": 401,
    "personal_access_token_expired": 401,
    "user_inactive": 401,
    "unauthorized": 403,
    "deferred_poll_capacity_exceeded": 503,  # for 0.12's client: it may ask again
    "io_error": 500,
    "cannot_append_message": 500,
}
_NO_TOKEN: Final = (0, 0, Era.V)
Endpoint = Callable[[Request], Awaitable[Response]]
Make = Callable[[Request, dict[str, Any]], Command]
Entry = tuple[str, str, Endpoint]  # method, path, what serves it


def each(show: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    """Apply `show` to every entry of a list."""
    return lambda entries: [show(entry) for entry in entries]


class HttpFace:
    """See the head of this module."""

    def __init__(self, service: Service, seed: bool = False, limits: Limits = DEFAULTS[IGGY_HTTP]) -> None:
        self._limits = limits
        self._service = service
        self._seed = seed
        self._tokens: dict[str, tuple[int, int, Era]] = {}  # token -> (user id, µs at which it ends, its client's era)
        self._waits = Waits(MOST_WAITS)
        self._numbers = count(1)
        self.server: HttpServer | None = None
        self.app = Starlette(routes=self._routes())

    # ── life ──

    async def start(self, host: str, port: int, cert_file: str | None = None, key_file: str | None = None) -> int:
        """Listen; returns the port. Raises EnvironmentProblem when the address cannot be bound."""
        self.server = await serve(_by_raw_path(self.app), host, port, self._limits, cert_file, key_file)
        return self.server.listener.port

    async def stop(self) -> None:
        self._waits.cancel_all()
        if self.server is not None:
            await self.server.end()
            self.server = None

    # ── from a request to the service ──

    def _routes(self) -> list[Route]:
        table = [*self._server_routes(), *self._user_routes(), *self._stream_routes(), *self._topic_routes()]
        return [Route(path, self._guarded(endpoint), methods=[method]) for method, path, endpoint in table]

    def _server_routes(self) -> list[Entry]:
        ask, do = self._answering, self._doing
        tokens = "/personal-access-tokens"
        return [
            ("GET", "/", self._root),
            ("GET", "/ping", self._ping),
            ("GET", "/stats", ask(lambda r, b: c.GetStats(), http_json.stats)),
            ("GET", "/cluster/metadata", ask(lambda r, b: c.GetClusterMetadata(), http_json.cluster)),
            ("GET", "/metadata/changes", ask(lambda r, b: c.GetMetadataChanges(), asdict)),  # refused
            ("POST", "/snapshot", self._snapshot),
            ("GET", "/options/{scope}", ask(http_commands.describe_options, each(http_json.option))),
            ("GET", "/clients", ask(lambda r, b: c.GetClients(), each(http_json.client))),
            (
                "GET",
                "/clients/{client}",
                ask(lambda r, b: c.GetClient(whole_number(r.path_params["client"])), http_json.client),
            ),
            ("POST", "/users/login", self._login),
            ("POST", "/users/refresh-token", self._refresh),
            ("DELETE", "/users/logout", self._logout),
            ("POST", tokens + "/login", self._login_with_token),
            ("GET", tokens, ask(lambda r, b: c.GetTokens(), each(http_json.token))),
            ("POST", tokens, ask(http_commands.create_token, asdict)),
            ("DELETE", tokens + "/{name}", do(lambda r, b: c.DeleteToken(r.path_params["name"]))),
        ]

    def _user_routes(self) -> list[Entry]:
        ask, do, one = self._answering, self._doing, "/users/{user}"
        return [
            ("GET", "/users", ask(lambda r, b: c.GetUsers(), each(http_json.user))),
            ("POST", "/users", ask(http_commands.create_user, http_json.user)),
            ("GET", one, ask(lambda r, b: c.GetUser(identifier_of(r, "user")), http_json.user)),
            ("PUT", one, do(http_commands.update_user)),
            ("DELETE", one, do(lambda r, b: c.DeleteUser(identifier_of(r, "user")))),
            ("PUT", one + "/permissions", do(http_commands.update_permissions)),
            ("PUT", one + "/password", do(http_commands.change_password)),
        ]

    def _stream_routes(self) -> list[Entry]:
        ask, do, one = self._answering, self._doing, "/streams/{stream}"
        return [
            ("GET", "/streams", ask(lambda r, b: c.GetStreams(), each(http_json.stream))),
            ("POST", "/streams", ask(http_commands.create_stream, http_json.stream)),
            ("GET", one, ask(lambda r, b: c.GetStream(identifier_of(r, "stream")), http_json.stream)),
            ("PUT", one, do(http_commands.update_stream)),
            ("DELETE", one, do(lambda r, b: c.DeleteStream(identifier_of(r, "stream")))),
            ("DELETE", one + "/purge", do(lambda r, b: c.PurgeStream(identifier_of(r, "stream")))),
        ]

    def _topic_routes(self) -> list[Entry]:
        ask, do, topics = self._answering, self._doing, "/streams/{stream}/topics"
        one = topics + "/{topic}"
        groups = one + "/consumer-groups"
        return [
            ("GET", topics, ask(lambda r, b: c.GetTopics(identifier_of(r, "stream")), each(http_json.topic))),
            ("POST", topics, ask(http_commands.create_topic, http_json.topic)),
            ("GET", one, ask(lambda r, b: c.GetTopic(*topic_of(r)), http_json.topic)),
            ("PUT", one, do(http_commands.update_topic)),
            ("DELETE", one, do(lambda r, b: c.DeleteTopic(*topic_of(r)))),
            ("DELETE", one + "/purge", do(lambda r, b: c.PurgeTopic(*topic_of(r)))),
            ("POST", one + "/partitions", do(http_commands.create_partitions, 201)),
            ("DELETE", one + "/partitions", do(http_commands.delete_partitions)),
            ("DELETE", one + "/partitions/{partition}", do(http_commands.delete_segments)),
            ("POST", one + "/messages", self._send_or_count),
            ("GET", one + "/messages", self._poll),
            ("GET", one + "/messages/deferred", self._poll_deferred),
            ("POST", one + "/messages/deferred", self._poll_deferred),
            ("PUT", one + "/consumer-offsets", do(http_commands.store_offset)),
            ("GET", one + "/consumer-offsets", ask(http_commands.get_offset, _offset)),
            ("DELETE", one + "/consumer-offsets/{consumer}", do(http_commands.delete_offset)),
            ("GET", groups, ask(lambda r, b: c.GetGroups(*topic_of(r)), each(http_json.group))),
            ("POST", groups, ask(http_commands.create_group, http_json.group)),
            (
                "GET",
                groups + "/{group}",
                ask(lambda r, b: c.GetGroup(*topic_of(r), identifier_of(r, "group")), http_json.group),
            ),
            ("DELETE", groups + "/{group}", do(lambda r, b: c.DeleteGroup(*topic_of(r), identifier_of(r, "group")))),
        ]

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        async def guarded(request: Request) -> Response:
            params = request.path_params
            request.scope["path_params"] = {name: unquote(text) for name, text in params.items()}
            try:
                return await endpoint(request)
            except HeadwaterError as error:
                return self._refused(error)
            except TimeoutError:  # of `_body`
                return Response(status_code=408, headers={"Connection": "close"})

        return guarded

    def _refused(self, error: HeadwaterError) -> Response:
        refused = as_refusal(error) if self._seed else of_today(as_refusal(error))
        status = _STATUSES.get(refused.name, 404 if refused.name.endswith("_not_found") else 400)
        number = seed_number(refused) if self._seed else refused.number
        return JSONResponse(http_json.error(refused, number), status)

    def _client(self, request: Request) -> Client:
        """The client of a request. Raises IggyError for an invalid token."""
        era = Era.S if self._seed else Era.V
        client = Client(0, HTTP, request.client.host if request.client is not None else "", era)
        header = request.headers.get("authorization", "")
        token = header[len("Bearer ") :] if header.startswith("Bearer ") else ""
        if token and not self._seed:
            user_id, ends, client.era = self._tokens.get(token, _NO_TOKEN)
            if ends <= self._service.clock_us():
                self._tokens.pop(token, None)
                raise refusal("unauthenticated", "the access token is unknown or past its time")
            request.state.era = client.era
            client.user = next((user for user in self._service.catalog.users if user.id == user_id), None)
        return client

    async def _execute(self, client: Client, command: Command) -> Any:
        view = execute(self._service, client, command)
        return await view if asyncio.iscoroutine(view) else view

    async def _made(self, make: Make, request: Request) -> Any:
        """Execute the command that a request makes; returns what it gives."""
        client = self._client(request)
        body = http_json.document(await self._body(request, client)) if request.method in ("POST", "PUT") else {}
        return await self._execute(client, make(request, body))

    def _answering(self, make: Make, show: Callable[[Any], Any]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            view = await self._made(make, request)
            if view is None:
                return self._refused(refusal("resource_not_found", "there is no such thing"))
            return JSONResponse(show(view), 201 if request.method == "POST" and self._seed else 200)

        return endpoint

    def _doing(self, make: Make, status: int = 204) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            await self._made(make, request)
            return Response(status_code=status)

        return endpoint

    # ── requests that are more than one command ──

    async def _root(self, request: Request) -> Response:
        return Response("Headwater, an Iggy server", media_type="text/plain")

    async def _ping(self, request: Request) -> Response:
        return Response("pong", media_type="text/plain")

    async def _login(self, request: Request) -> Response:
        body = http_json.document(await self._body(request))
        login = c.Login(field(body, "username", str), field(body, "password", str))
        return await self._enter(login, of_crate(body.get("version")))

    async def _login_with_token(self, request: Request) -> Response:
        token = field(http_json.document(await self._body(request)), "token", str)
        return await self._enter(c.LoginWithToken(token), Era.V)  # it names no version

    async def _body(self, request: Request, client: Client | None = None) -> bytes:
        """The body of a request; without authentication the limits before login apply."""
        limits = self._limits
        if self._seed or (client is not None and client.user is not None):
            return await _read_body(request, MAX_BODY)
        async with asyncio.timeout(limits.login_seconds or None):
            return await _read_body(request, min(limits.login_bytes or MAX_BODY, MAX_BODY))

    async def _enter(self, command: Command, era: Era) -> Response:
        view = await self._execute(Client(0, HTTP, "", Era.C3), command)  # a login without a version
        return self._granted(view.user_id, era)

    def _granted(self, user_id: int, era: Era) -> Response:
        now = self._service.clock_us()
        self._tokens = {token: known for token, known in self._tokens.items() if known[1] > now}
        token, ends = secrets.token_urlsafe(32), now + TOKEN_SECONDS * 1_000_000
        self._tokens[token] = (user_id, ends, era)
        return JSONResponse({"user_id": user_id, "access_token": {"token": token, "expiry": ends // 1_000_000}})

    async def _refresh(self, request: Request) -> Response:
        """Replace a valid token by a new one."""
        body = http_json.document(await self._body(request))
        user_id, ends, era = self._tokens.pop(field(body, "token", str), _NO_TOKEN)
        user = next((user for user in self._service.catalog.users if user.id == user_id), None)
        if ends <= self._service.clock_us() or user is None or user.status != ACTIVE:
            raise refusal("unauthenticated", "the access token is unknown or past its time")
        return self._granted(user_id, era)

    async def _logout(self, request: Request) -> Response:
        self._tokens.pop(request.headers.get("authorization", "").removeprefix("Bearer "), None)
        return Response(status_code=204)

    async def _send_or_count(self, request: Request) -> Response:
        try:
            return await self._send(request)
        except HeadwaterError:
            self._service.clients.refused_sends += 1
            raise

    async def _send(self, request: Request) -> Response:
        client = self._client(request)
        body = http_json.document(await self._body(request, client))
        where = http_json.partitioning(body.get("partitioning"))
        parts = http_json.parts(body.get("messages"), self._service.clock_us(), self._seed)
        if not self._seed:
            parts = [part if any(part.id) else part._replace(id=self._new_id()) for part in parts]
        batch, checksums = build(parts)
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: StorageError | None) -> None:
            if not stored.done():
                stored.set_result(None) if error is None else stored.set_exception(error)

        address = c.SendMessages(*topic_of(request), where, len(parts))
        sent = send(
            self._service,
            client,
            address,
            Batch(batch, 0, len(batch)),
            checksums,
            done,
            http_commands.incarnation(body),
        )
        await stored
        if self._seed:
            return Response(status_code=201)
        shown = {"stream_id": sent.stream, "topic_id": sent.topic, "partition_id": sent.partition}
        return JSONResponse({"confirmations": [{**shown, "base_offset": sent.base_offset}]}, 201)

    async def _snapshot(self, request: Request) -> Response:
        client = self._client(request)
        command = http_json.snapshot(http_json.document(await self._body(request, client)))
        packed: bytes = await self._execute(client, command)
        name = {"Content-Disposition": 'attachment; filename="iggy_snapshot.zip"'}
        return Response(packed, media_type="application/zip", headers=name)

    def _new_id(self) -> bytes:
        """The id of a message without one: a random UUID, as in upstream's server."""
        return UUID(bytes=self._service.entropy(16), version=4).int.to_bytes(16, "little")

    async def _poll(self, request: Request) -> Response:
        client, command = self._client(request), http_commands.polling(request)
        self._service.authorize(client, command)
        return await self._shown(await poll_in_turns(poll(self._service, client, command)))

    async def _poll_deferred(self, request: Request) -> Response:
        """Poll as protocol 0.12 does: wait for messages, and answer with so many bytes at most. A POST where the poll
        stores its offset, because a proxy may repeat a GET; a client that leaves is noticed when it is answered."""
        client, query, plain = self._client(request), request.query_params, http_commands.polling(request)
        client.era = Era.X
        waiting = {name: whole_number(query.get(name, "0")) for name in ("wait_us", "request_timeout_us")}
        command = c.PollDeferred(
            plain.consumer,
            plain.stream,
            plain.topic,
            plain.partition,
            plain.strategy,
            plain.count,
            plain.auto_commit,
            waiting["wait_us"],
            whole_number(query.get("min_count", "1")),
            whole_number(query.get("max_bytes", str(MAX_BODY))),
            waiting["request_timeout_us"],
        )
        self._service.authorize(client, command)
        number = next(self._numbers)
        wait = self._waits.begin(number)
        try:
            return await self._shown(await poll_deferred(self._service, client, command, wait))
        finally:
            self._waits.end(number)

    async def _shown(self, found: Found) -> Response:
        if found.polled.size <= THREAD_BYTES:
            return self._polled(found)
        return await asyncio.to_thread(self._polled, found)

    def _polled(self, found: Found) -> Response:
        """The JSON of a poll; it reads only the messages, so a thread may run it."""
        try:
            messages = from_batches(found.polled.read())
        except HeaderError as error:
            raise refusal("cannot_read_message", str(error)) from error
        if self._seed:
            return JSONResponse(http_json.seed_messages(messages))
        context = Context(found.incarnation, found.owner, self._service.operations)
        return JSONResponse(http_json.polled(messages, found.partition, found.polled.current_offset, context))


def _by_raw_path(app: ASGIApp) -> ASGIApp:
    """Match the undecoded path, so that a name may contain a slash, as %2F; `_guarded` decodes the names."""

    async def serve_raw(scope: Scope, receive: Receive, send: Send) -> None:
        if raw := scope.get("raw_path"):
            scope = {**scope, "path": raw.decode("latin-1")}
        await app(scope, receive, send)

    return serve_raw


async def _read_body(request: Request, most: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise refusal("invalid_command", f"a request has at most {most} bytes", len(body))
    return bytes(body)


def _offset(view: Any) -> dict[str, Any]:
    shown = asdict(view)
    return {"partition_id": shown.pop("partition"), **shown} if "partition" in shown else shown
