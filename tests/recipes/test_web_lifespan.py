"""Our client in the lifespan of a FastAPI or Starlette application: one connection for as long as the application runs."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.scripted_server import finish

import headwater


async def get(application: Any, path: str) -> tuple[int, bytes]:
    """What an ASGI server gets for GET `path`."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "http_version": "1.1", "method": "GET", "path": path, "raw_path": path.encode()}
    scope |= {
        "query_string": b"",
        "headers": [],
        "scheme": "http",
        "server": ("h", 80),
        "client": ("c", 1),
        "app": application,
    }
    await application(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


def lifespan_at(url: str) -> Callable[[Any], Any]:
    """The recipe: connect before the first request, drain after the last one."""

    @asynccontextmanager
    async def lifespan(application: Any) -> AsyncIterator[None]:
        async with await headwater.connect(url) as client:
            application.state.nats = client
            yield

    return lifespan


def starlette(url: str) -> Any:
    applications = pytest.importorskip("starlette.applications", reason="Starlette is not installed")
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def price(request: Request) -> PlainTextResponse:
        answer = await request.app.state.nats.request("prices", request.path_params["name"].encode(), timeout=30)
        return PlainTextResponse(answer.data)

    return applications.Starlette(routes=[Route("/price/{name}", price)], lifespan=lifespan_at(url))


def fastapi(url: str) -> Any:
    module = pytest.importorskip("fastapi", reason="FastAPI is not installed")
    application = module.FastAPI(lifespan=lifespan_at(url))

    @application.get("/price/{name}")  # type: ignore[untyped-decorator, unused-ignore]
    async def price(name: str) -> str:
        answer: headwater.Message = await application.state.nats.request("prices", name.encode(), timeout=30)
        return answer.data.decode()

    return application


@pytest.mark.parametrize("framework", [starlette, fastapi])
def test_an_application_asks_through_the_client_of_its_lifespan(framework: Callable[[str], Any]) -> None:
    async def main() -> None:
        async with headwater.Broker() as broker, await headwater.connect(broker.url) as prices:
            await prices.subscribe("prices", callback=lambda message: message.respond(b"12 for " + message.data))
            await prices.flush()
            application = framework(broker.url)
            async with application.router.lifespan_context(application):
                client = application.state.nats
                found = await asyncio.gather(*(get(application, f"/price/{name}") for name in ("tea", "milk")))
                assert [status for status, _ in found] == [200, 200]
                assert [body.strip(b'"') for _, body in found] == [b"12 for tea", b"12 for milk"]
            assert client.is_closed

    finish(main(), 60)


def test_the_client_works_in_the_task_groups_and_cancel_scopes_of_anyio() -> None:
    anyio = pytest.importorskip("anyio", reason="anyio is not installed")

    async def main() -> None:
        async with headwater.Broker() as broker, await headwater.connect(broker.url) as client:
            subscription = await client.subscribe("news")
            with anyio.move_on_after(0.01) as scope:
                await subscription.next()
            assert scope.cancelled_caught
            await client.subscribe("echo", callback=lambda message: message.respond(message.data))
            answers: list[bytes] = []

            async def ask(text: bytes) -> None:
                answers.append((await client.request("echo", text, timeout=30)).data)

            async with anyio.create_task_group() as group:
                for text in (b"1", b"2"):
                    group.start_soon(ask, text)
            assert sorted(answers) == [b"1", b"2"]

    anyio.run(main, backend="asyncio")
