"""What every consumer does: pauses, what leaves the stream under it, headers only, going idle."""

import asyncio
import json
from pathlib import Path

from support.jetstream_in_process import Desk, served

SECOND = 10**9


def pull(desk: Desk, consumer: str, inbox: str, **request: object) -> None:
    subject = f"$JS.API.CONSUMER.MSG.NEXT.S.{consumer}"
    desk.router.publish(subject.encode(), inbox.encode(), b"", json.dumps(request).encode())


def test_what_is_deleted_before_its_turn_is_not_delivered_and_not_counted(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            for number in range(6):
                await desk.publish("S.a", b"%d" % number)
            await desk.consume("S", "c", ack_policy="explicit")
            box = desk.listen("box")
            pull(desk, "c", "box", batch=1)
            await box.next()
            await desk.api("STREAM.MSG.DELETE.S", {"seq": 3})
            assert (await desk.api("CONSUMER.INFO.S.c"))["num_pending"] == 4
            await desk.api("STREAM.PURGE.S", {"seq": 5})
            assert (await desk.api("CONSUMER.INFO.S.c"))["num_pending"] == 2
            pull(desk, "c", "box", batch=9, no_wait=True)
            assert [received.payload for received in await box.take(2)] == [b"4", b"5"]

    asyncio.run(main())


def test_headers_only_says_the_size_and_keeps_the_headers(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            await desk.publish("S.a", b"12345", b"NATS/1.0\r\nOwn: kept\r\n\r\n")
            await desk.consume("S", "c", ack_policy="none", headers_only=True)
            box = desk.listen("box")
            pull(desk, "c", "box", batch=1)
            received = await box.next()
            assert received.payload == b""
            assert received.header_block == b"NATS/1.0\r\nOwn: kept\r\nNats-Msg-Size: 5\r\n\r\n"

    asyncio.run(main())


def test_a_paused_consumer_rests_and_goes_on_when_the_pause_is_taken_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            await desk.publish("S.a", b"x")
            await desk.consume("S", "c", ack_policy="explicit", pause_until="2100-01-01T00:00:00Z")
            box = desk.listen("box")
            pull(desk, "c", "box", batch=1, expires=20 * SECOND)
            info = await desk.api("CONSUMER.INFO.S.c")
            assert (info["paused"], info["num_waiting"], box.empty) == (True, 1, True)
            await desk.api("CONSUMER.PAUSE.S.c", {})
            assert (await box.next()).payload == b"x"

    asyncio.run(main())


def test_nobody_uses_it_and_it_goes(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            await desk.consume("S", "c", inactive_threshold=SECOND // 20)
            stream = desk.service.streams["S"]
            async with asyncio.timeout(15):
                while stream.consumers:  # noqa: ASYNC110  (no event says so)
                    await asyncio.sleep(0.02)
            assert (await desk.api("CONSUMER.INFO.S.c"))["error"]["err_code"] == 10014

    asyncio.run(main())


def test_whoever_still_works_on_a_message_keeps_the_consumer(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            await desk.publish("S.a", b"slow work")
            await desk.consume("S", "c", ack_policy="explicit", ack_wait=3600 * SECOND, inactive_threshold=SECOND)
            box = desk.listen("box")
            pull(desk, "c", "box", batch=1)
            message = await box.next()
            stream = desk.service.streams["S"]
            consumer = stream.consumers["c"]
            consumer._activity.at = 0
            consumer._on_alarm()
            assert "c" in stream.consumers, "its ack wait is not over"
            await desk.ask(message.reply.decode(), b"+ACK")
            consumer._activity.at = 0
            consumer._on_alarm()
            async with asyncio.timeout(15):
                while stream.consumers:  # noqa: ASYNC110  (no event says so)
                    await asyncio.sleep(0.02)

    asyncio.run(main())


def test_a_reset_begins_anew(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            for number in range(4):
                await desk.publish("S.a", b"%d" % number)
            await desk.consume("S", "c", ack_policy="explicit", durable_name="c")
            box = desk.listen("box")
            pull(desk, "c", "box", batch=4)
            await box.take(4)
            await desk.api("CONSUMER.RESET.S.c", {"seq": 3})
            pull(desk, "c", "box", batch=2)
            again = await box.take(2)
            assert [received.payload for received in again] == [b"2", b"3"]
            assert [received.reply.split(b".")[4:7] for received in again] == [[b"1", b"3", b"1"], [b"1", b"4", b"2"]]

    asyncio.run(main())


def test_an_ack_of_what_the_consumer_does_not_know_to_be_delivered_is_not_answered(tmp_path: Path) -> None:
    """A client has it from before a crash, and it will come again: to confirm would be a promise that is not kept."""

    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            for number in range(3):
                await desk.publish("S.a", b"%d" % number)
            await desk.consume("S", "c", ack_policy="explicit", durable_name="c")
            box = desk.listen("box")
            pull(desk, "c", "box", batch=1)
            first = await box.next()
            answers = desk.listen("answers.*")
            desk.router.publish(b"$JS.ACK.S.c.1.2.2.1.1", b"answers.ack", b"", b"+ACK")
            desk.router.publish(b"$JS.ACK.S.c.1.3.3.1.1", b"answers.term", b"", b"+TERM")
            assert (await desk.ask(first.reply.decode(), b"+ACK")).header_block == b""
            assert (await desk.ask(first.reply.decode(), b"+ACK")).header_block == b"", "a second time as well"
            assert answers.empty
            pull(desk, "c", "box", batch=9, no_wait=True)
            assert [received.payload for received in await box.take(2)] == [b"1", b"2"]

    asyncio.run(main())
