"""Acknowledgements of every kind: what they change, what is answered, and which of them make a message leave."""

import asyncio
from pathlib import Path

import pytest
from support.jetstream_in_process import Desk, Listener, served

SECOND = 10**9


async def delivered(desk: Desk) -> tuple[Listener, list[bytes]]:
    """A stream of three messages, all of them delivered to a consumer; a listener, and their ack subjects."""
    await desk.make("S")
    for number in range(3):
        await desk.publish("S.a", b"%d" % number)
    await desk.consume("S", "c", ack_policy="explicit", ack_wait=3600 * SECOND)
    box = desk.listen("box")
    desk.router.publish(b"$JS.API.CONSUMER.MSG.NEXT.S.c", b"box", b"", b"3")
    return box, [received.reply for received in await box.take(3)]


@pytest.mark.parametrize(
    ("payload", "pending"),
    [(b"", 2), (b"+ACK", 2), (b"+TERM reason", 2), (b"-NAK", 3), (b"+WPI", 3), (b"hello", 3)],
)
def test_each_kind_is_answered_and_settles_or_does_not(tmp_path: Path, payload: bytes, pending: int) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            _, acks = await delivered(desk)
            assert (await desk.ask(acks[0].decode(), payload)).payload == b""
            assert (await desk.api("CONSUMER.INFO.S.c"))["num_ack_pending"] == pending

    asyncio.run(main())


def test_a_refusal_is_told_to_who_listens_from_then_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            box, acks = await delivered(desk)
            for listens in (False, True):
                advisories = desk.listen("$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.S.c") if listens else None
                desk.router.publish(acks[listens], b"", b"", b"-NAK")
                desk.router.publish(b"$JS.API.CONSUMER.MSG.NEXT.S.c", b"box", b"", b"1")
                assert (await box.take(1))[0].payload == b"%d" % listens
                if advisories is not None:
                    assert b'"stream_seq":2' in (await advisories.take(1))[0].payload
            shown = await desk.api("CONSUMER.INFO.S.c")
            assert (shown["num_ack_pending"], shown["num_redelivered"]) == (3, 2)
            assert "last_active" not in shown["ack_floor"]

    asyncio.run(main())


def test_the_next_message_comes_with_an_acknowledgement_that_asks_for_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            _, acks = await delivered(desk)
            await desk.publish("S.a", b"next")
            assert (await desk.ask(acks[0].decode(), b"+NXT")).payload == b"next"

    asyncio.run(main())


@pytest.mark.parametrize(("policy", "left"), [("explicit", 2), ("all", 1)])
def test_a_settled_message_leaves_a_stream_that_keeps_by_interest(tmp_path: Path, policy: str, left: int) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S", retention="interest")
            await desk.consume("S", "c", ack_policy=policy)
            for number in range(3):
                await desk.publish("S.a", b"%d" % number)
            box = desk.listen("box")
            desk.router.publish(b"$JS.API.CONSUMER.MSG.NEXT.S.c", b"box", b"", b"3")
            second = (await box.take(3))[1]
            await desk.ask(second.reply.decode(), b"+ACK")
            assert (await desk.api("STREAM.INFO.S"))["state"]["messages"] == left

    asyncio.run(main())
