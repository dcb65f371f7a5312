"""Push consumers at work: they wait for a listener, ask how far it has come, and show that they live."""

import asyncio
from pathlib import Path

import pytest
from support.jetstream_in_process import Desk, Listener, served


async def more_than_a_window(desk: Desk, ack_policy: str) -> Listener:
    """Who listens to a consumer with flow control of a stream of 40 messages, more than may be on their way."""
    await desk.make("S")
    for _ in range(40):
        await desk.publish("S.x", b"x" * 8000)
    ear = desk.listen("to")
    await desk.consume(
        "S", "c", deliver_subject="to", ack_policy=ack_policy, flow_control=True, idle_heartbeat=100_000_000
    )
    return ear


def test_messages_wait_for_a_listener(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            for number in range(3):
                await desk.publish("S.x", b"%d" % number)
            made = await desk.consume("S", "c", deliver_subject="to", ack_policy="none", inactive_threshold=10**11)
            assert made["num_pending"] == 3
            assert "push_bound" not in made
            ear = desk.listen("to")
            assert [message.payload for message in await ear.take(3)] == [b"0", b"1", b"2"]
            assert (await desk.api("CONSUMER.INFO.S.c"))["push_bound"]

    asyncio.run(main())


def test_the_first_message_goes_at_once_when_somebody_subscribes(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            await desk.publish("S.x", b"1")
            await desk.consume("S", "c", deliver_subject="to.me", ack_policy="none")
            while not desk.router.awaited:  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0)
            ear = desk.listen("to.*")
            for _ in range(2):  # turns of the loop, one of them the consumer's
                await asyncio.sleep(0)
            assert not ear.empty
            assert not desk.router.awaited

    asyncio.run(main())


def test_who_is_deleted_waits_for_no_listener(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            await desk.publish("S.x", b"1")
            await desk.consume("S", "c", deliver_subject="to", ack_policy="none")
            while not desk.router.awaited:  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0)
            await desk.api("CONSUMER.DELETE.S.c")
            assert not desk.router.awaited

    asyncio.run(main())


def test_a_full_window_waits_for_the_client_to_say_how_far_it_has_come(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            ear = await more_than_a_window(desk, "none")
            messages, flow_reply, stalled = 0, b"", b""
            while not stalled:
                received = await ear.next()
                if received.header_block.startswith(b"NATS/1.0 100 FlowControl"):
                    flow_reply = received.reply
                elif received.header_block.startswith(b"NATS/1.0 100 Idle"):
                    stalled = received.header_block
                else:
                    messages += 1
            assert 4 < messages < 40
            assert b"Nats-Consumer-Stalled: " + flow_reply in stalled
            while messages < 40:
                desk.router.publish(flow_reply, b"", b"", b"")
                received = await ear.next()
                while received.header_block.startswith(b"NATS/1.0 100 Idle"):
                    received = await ear.next()
                if received.header_block:
                    flow_reply = received.reply
                else:
                    messages += 1

    asyncio.run(main())


def test_an_answer_to_flow_control_with_numbers_of_no_stream_settles_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            ear = await more_than_a_window(desk, "flow_control")
            received = await ear.next()
            while not received.header_block.startswith(b"NATS/1.0 100 FlowControl"):
                received = await ear.next()
            many = b"9" * 5000
            block = b"NATS/1.0\r\nNats-Last-Stream: %b\r\nNats-Last-Consumer: %b\r\n\r\n" % (many, many)
            desk.router.publish(received.reply, b"", block, b"")
            assert (await desk.api("CONSUMER.INFO.S.c"))["ack_floor"]["stream_seq"] == 0

    asyncio.run(main())
    assert "internal_subscription_failed" not in caplog.text


def test_a_pull_is_answered_with_what_it_is(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            await desk.consume("S", "c", deliver_subject="to", ack_policy="none")
            answer = await desk.ask("$JS.API.CONSUMER.MSG.NEXT.S.c", b"1")
            assert answer.header_block == b"NATS/1.0 409 Consumer is push based\r\n\r\n"

    asyncio.run(main())


def test_an_ephemeral_one_that_nobody_hears_is_deleted(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            await desk.consume("S", "c", deliver_subject="to", ack_policy="none", inactive_threshold=50_000_000)
            while (await desk.api("CONSUMER.NAMES.S"))["consumers"]:  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0.01)

    asyncio.run(main())


def test_what_a_watcher_was_told_of_does_not_expire_before_it_has_subscribed(tmp_path: Path) -> None:
    second = 10**9

    async def main() -> None:
        clock = [10**18]
        async with served(tmp_path, clock) as desk:
            await desk.make("S", storage="memory", max_age=second)
            await desk.publish("S.1", b"x")
            await desk.consume("S", "c", deliver_subject="to", ack_policy="none")
            clock[0] += 3 * second // 2
            desk.service.streams["S"].enforce()
            assert (await desk.listen("to").next()).payload == b"x"
            clock[0] += 2 * second
            desk.service.streams["S"].enforce()
            assert desk.service.streams["S"].contents.subjects.messages == 0

    asyncio.run(main())


@pytest.mark.parametrize("slow", [False, True])
def test_what_a_watcher_was_told_of_does_not_expire_before_it_has_it_if_it_is_quick(tmp_path: Path, slow: bool) -> None:
    second = 10**9

    async def main() -> None:
        clock = [10**18]
        async with served(tmp_path, clock) as desk:
            await desk.make("S", storage="memory", max_age=second)
            for number in range(200):
                await desk.publish(f"S.{number}", b"x" * 800)
            stream, ear = desk.service.streams["S"], desk.listen("to")
            settings = {"deliver_policy": "last_per_subject", "filter_subject": "S.>", "ack_policy": "none"}
            flow = {"flow_control": True, "idle_heartbeat": 10**10}
            reported = await desk.consume("S", "c", deliver_subject="to", **settings, **flow)
            assert reported["num_pending"] == 200
            received = [await ear.next()]
            while not received[-1].header_block:  # until it is asked how far it has come; some more are on their way
                received.append(await ear.next())
            clock[0] += 3 * second // 2  # all are too old now
            stream.enforce()
            assert stream.contents.subjects.messages == 200
            if slow:
                clock[0] += 2 * second
                stream.enforce()
                assert stream.contents.subjects.messages == 0
                return
            while not received[-1].reply.endswith(b".0"):
                if received[-1].header_block:
                    desk.router.publish(received[-1].reply, b"", b"", b"")
                received.append(await ear.next())
            assert len([message for message in received if not message.header_block]) == 200

    asyncio.run(main())
