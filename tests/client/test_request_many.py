"""One question, several answers: by number, by a pause, by a last answer, by time; silence is an error, no empty result."""

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from support.both_servers import Serve
from support.nats_server import NatsServer
from support.scripted_server import finish

import headwater
from headwater.client import sync
from headwater.client.request_many import is_empty
from headwater.errors import ConfigError, NoResponders, RequestTimeout


async def answers(serve: Serve, responders: list[list[bytes]], **limits: Any) -> list[bytes]:
    """What comes when each of `responders` answers with its payloads."""
    subject = f"many.{secrets.token_hex(4)}"

    def responder(payloads: list[bytes]) -> Callable[[headwater.Message], None]:
        def answer(message: headwater.Message) -> None:
            for payload in payloads:
                message.respond(payload)

        return answer

    async with serve() as url, await headwater.connect(url) as client:
        for payloads in responders:
            await client.subscribe(subject, callback=responder(payloads))
        await client.flush()
        found = [answer.data async for answer in client.request_many(subject, b"?", **limits)]
        assert len(client._connection.queues) == len(responders)  # the inbox is no interest any more
        return found


def test_a_number_of_answers_ends_it(serve: Serve) -> None:
    assert sorted(finish(answers(serve, [[b"1"], [b"2"], [b"3"]], count=3, timeout=30))) == [b"1", b"2", b"3"]
    assert len(finish(answers(serve, [[b"1", b"2", b"3"]], count=2, timeout=30))) == 2


def test_a_sentinel_ends_it_and_is_not_given(serve: Serve) -> None:
    assert finish(answers(serve, [[b"1", b"2", b"", b"3"]], sentinel=is_empty, timeout=30)) == [b"1", b"2"]
    assert finish(answers(serve, [[b""]], sentinel=is_empty, timeout=30)) == []


def test_a_pause_after_an_answer_ends_it(serve: Serve) -> None:
    assert sorted(finish(answers(serve, [[b"1"], [b"2"]], stall=0.2, timeout=30))) == [b"1", b"2"]


def test_time_ends_it_with_what_has_come(serve: Serve) -> None:
    assert finish(answers(serve, [[b"1"]], timeout=0.2)) == [b"1"]


def test_silence_is_an_error_and_so_is_nobody(serve: Serve) -> None:
    with pytest.raises(RequestTimeout, match="no answer"):
        finish(answers(serve, [[]], timeout=0.1))
    with pytest.raises(NoResponders):
        finish(answers(serve, [], timeout=30))


@pytest.mark.parametrize("limits", [{"count": -1}, {"timeout": 0}, {"stall": -1}, {"timeout": 3 * 10**9}])
def test_limits_that_are_none_are_refused(limits: dict[str, float]) -> None:
    async def main() -> None:
        async with headwater.Broker() as broker, await headwater.connect(broker.url) as client:
            options: dict[str, Any] = limits
            with pytest.raises(ConfigError):
                await anext(client.request_many("a", **options))

    finish(main())


@pytest.mark.interop
def test_blocking_programs_ask_many_too(real_server: NatsServer) -> None:
    with sync.connect(real_server.url) as client:
        client.subscribe("many", callback=lambda message: [message.respond(payload) for payload in (b"1", b"2")])
        client.flush()
        assert [answer.data for answer in client.request_many("many", b"?", 30, count=2)] == [b"1", b"2"]
