"""Waiting for a callout service: none listens, one is silent, one answers twice, and the broker stops."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from headwater.authorization.callout import SUBJECT, Callout, Question
from headwater.authorization.identity import Credentials, Identity, Refusal
from headwater.authorization.server_keys import ServerKeys
from headwater.exchange.accounts import Accounts
from headwater.exchange.callouts import Callouts
from headwater.options.access import SYSTEM_ACCOUNT
from headwater.wire.handshake import ConnectOptions

CALLOUT = Callout("$G", "A", frozenset({"auth"}), "", frozenset(), frozenset({"A"}))
QUESTION = Question(CALLOUT, Credentials(user="ann"), ConnectOptions())


class Desk:
    """Accounts without clients, and a `Callouts` to test."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.accounts = Accounts([], SYSTEM_ACCOUNT, loop.call_soon, 1 << 20)
        self.callouts = Callouts(self.accounts, ServerKeys(), lambda: 1_800_000_000.0, lambda *_: Refusal("unused"))
        self.replies: list[bytes] = []
        self.verdict: asyncio.Future[Identity | Refusal] = loop.create_future()

    def listen(self) -> None:
        def received(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
            self.replies.append(bytes(reply))
            return True

        self.accounts["$G"].router.subscribe_internal(SUBJECT, received)

    def ask(self, seconds: float) -> None:
        self.callouts.ask(QUESTION, {"name": "n", "host": "h"}, {"host": "127.0.0.1"}, seconds, self.verdict.set_result)

    def subscriptions(self) -> int:
        return len(list(self.accounts["$G"].router.sublist.all()))


def run(main: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await main

    asyncio.run(bounded())


def test_without_a_service_a_login_is_refused_at_once() -> None:
    async def main() -> None:
        desk = Desk()
        desk.ask(1000)
        assert not desk.verdict.done()  # never from inside the call
        assert await desk.verdict == Refusal("no callout service listens")
        assert desk.subscriptions() == 0

    run(main())


def test_a_silent_service_refuses_a_login_when_the_time_is_over() -> None:
    async def main() -> None:
        desk = Desk()
        desk.listen()
        desk.ask(0.01)
        assert await desk.verdict == Refusal("the callout service did not answer in time")
        assert desk.subscriptions() == 1  # that of the service

    run(main())


def test_the_first_answer_counts() -> None:
    async def main() -> None:
        desk = Desk()
        desk.listen()
        desk.ask(1000)
        for answer in (b"", b"again"):
            desk.accounts["$G"].router.publish(desk.replies[0], b"", b"", answer)
        assert await desk.verdict == Refusal("the callout service gives no reason")

    run(main())


def test_a_stopping_broker_drops_waiting_requests() -> None:
    async def main() -> None:
        desk = Desk()
        desk.listen()
        desk.ask(1000)
        desk.callouts.stop()
        await asyncio.sleep(0)
        assert not desk.verdict.done()
        assert desk.subscriptions() == 1

    run(main())
