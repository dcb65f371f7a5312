"""Pull consumers at work: who gets what, in which order, and which status comes when there is nothing."""

import asyncio
import json
from pathlib import Path

from support.jetstream_in_process import Desk, served


def request(**fields: object) -> bytes:
    return json.dumps(fields).encode()


async def fill(desk: Desk, count: int, **settings: object) -> None:
    await desk.make("S", **settings)
    for number in range(count):
        await desk.publish(f"S.{number % 3}", b"%d" % number)


def test_a_replay_without_acks_comes_whole_and_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await fill(desk, 30)
            await desk.consume("S", "c", ack_policy="none")
            box = desk.listen("box")
            desk.router.publish(b"$JS.API.CONSUMER.MSG.NEXT.S.c", b"box", b"", request(batch=20, expires=10**10))
            first = await box.take(20)
            assert [message.payload for message in first] == [b"%d" % number for number in range(20)]
            assert [int(message.reply.split(b".")[5]) for message in first] == list(range(1, 21))
            assert [int(message.reply.split(b".")[8]) for message in first] == list(range(29, 9, -1))
            desk.router.publish(b"$JS.API.CONSUMER.MSG.NEXT.S.c", b"box", b"", request(batch=20, no_wait=True))
            rest = await box.take(11)
            assert [message.payload for message in rest[:10]] == [b"%d" % number for number in range(20, 30)]
            assert rest[10].header_block.startswith(b"NATS/1.0 404 ")
            info = await desk.api("CONSUMER.INFO.S.c")
            assert (info["delivered"]["stream_seq"], info["num_pending"], info["num_waiting"]) == (30, 0, 0)

    asyncio.run(main())


def test_requests_take_turns(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            await desk.consume("S", "c", ack_policy="none")
            one, other = desk.listen("one"), desk.listen("other")
            for inbox in (b"one", b"other"):
                desk.router.publish(b"$JS.API.CONSUMER.MSG.NEXT.S.c", inbox, b"", request(batch=2, expires=10**10))
            for number in range(4):
                await desk.publish("S.x", b"%d" % number)
            assert [message.payload for message in await one.take(2)] == [b"0", b"2"]
            assert [message.payload for message in await other.take(2)] == [b"1", b"3"]

    asyncio.run(main())


def test_a_message_that_is_refused_comes_again_and_a_settled_one_does_not(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await fill(desk, 2)
            await desk.consume("S", "c", durable_name="c", ack_policy="explicit")
            box = desk.listen("box")
            ask = b"$JS.API.CONSUMER.MSG.NEXT.S.c"
            desk.router.publish(ask, b"box", b"", b"2")
            first, second = await box.take(2)
            desk.router.publish(first.reply, b"", b"", b"-NAK")
            desk.router.publish(second.reply, b"", b"", b"+ACK")
            desk.router.publish(ask, b"box", b"", b"1")
            again = await box.next()
            assert again.payload == first.payload
            assert again.reply.split(b".")[4] == b"2", "the second delivery"

    asyncio.run(main())


def test_a_request_too_many_is_refused_or_left_to_its_heartbeats(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await fill(desk, 2)
            await desk.consume("S", "c", ack_policy="explicit", max_ack_pending=1, max_waiting=1)
            box, ask = desk.listen("box"), b"$JS.API.CONSUMER.MSG.NEXT.S.c"
            desk.router.publish(ask, b"box", b"", request(batch=10))
            assert (await box.next()).payload == b"0"
            later = 10**11
            desk.router.publish(ask, b"box", b"", request(batch=1, expires=later, idle_heartbeat=later // 10))
            desk.router.publish(ask, b"box", b"", request(batch=1, expires=later))
            assert (await box.next()).header_block == b"NATS/1.0 409 Exceeded MaxWaiting\r\n\r\n"
            desk.router.publish(ask, b"box", b"", request(batch=1, no_wait=True))
            assert (await box.next()).header_block == b"NATS/1.0 408 Requests Pending\r\n\r\n"
            assert (await desk.api("CONSUMER.INFO.S.c"))["num_waiting"] == 1

    asyncio.run(main())


def test_a_paused_consumer_gives_nothing_until_its_time_comes(tmp_path: Path) -> None:
    async def main() -> None:
        clock = [1_700_000_000_000_000_000]
        async with served(tmp_path, clock) as desk:
            await fill(desk, 1)
            await desk.consume("S", "c", ack_policy="none")
            paused = await desk.api("CONSUMER.PAUSE.S.c", {"pause_until": "2023-11-14T22:13:25Z"})
            assert (paused["paused"], paused["pause_remaining"]) == (True, 5_000_000_000)
            box = desk.listen("box")
            desk.router.publish(b"$JS.API.CONSUMER.MSG.NEXT.S.c", b"box", b"", request(batch=1, expires=10**7))
            assert (await box.next()).header_block.startswith(b"NATS/1.0 408 Request Timeout")
            await desk.api("CONSUMER.PAUSE.S.c", {})
            desk.router.publish(b"$JS.API.CONSUMER.MSG.NEXT.S.c", b"box", b"", request(batch=1))
            assert (await box.next()).payload == b"0"

    asyncio.run(main())


def test_what_leaves_the_stream_is_not_pending_any_more(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await fill(desk, 9)
            await desk.consume("S", "all", ack_policy="none")
            await desk.consume("S", "some", ack_policy="none", filter_subject="S.1")
            await desk.api("STREAM.MSG.DELETE.S", {"seq": 2})
            await desk.api("STREAM.PURGE.S", {"filter": "S.0"})
            pending = [(await desk.api(f"CONSUMER.INFO.S.{name}"))["num_pending"] for name in ("all", "some")]
            assert pending == [5, 2]
            box = desk.listen("box")
            desk.router.publish(b"$JS.API.CONSUMER.MSG.NEXT.S.all", b"box", b"", request(batch=9, no_wait=True))
            received = await box.take(6)
            assert [message.payload for message in received[:5]] == [b"2", b"4", b"5", b"7", b"8"]

    asyncio.run(main())
