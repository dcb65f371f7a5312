"""Push consumers at work: they wait for a listener, ask how far it has come, and show that they live."""

import asyncio
from pathlib import Path

from support.jetstream_in_process import served


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


def test_a_full_window_waits_for_the_client_to_say_how_far_it_has_come(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            for _ in range(40):
                await desk.publish("S.x", b"x" * 8000)
            ear = desk.listen("to")
            await desk.consume(
                "S", "c", deliver_subject="to", ack_policy="none", flow_control=True, idle_heartbeat=100_000_000
            )
            messages, asked, stalled = 0, b"", b""
            while not stalled:
                heard = await ear.next()
                if heard.header_block.startswith(b"NATS/1.0 100 FlowControl"):
                    asked = heard.reply
                elif heard.header_block.startswith(b"NATS/1.0 100 Idle"):
                    stalled = heard.header_block
                else:
                    messages += 1
            assert 4 < messages < 40
            assert b"Nats-Consumer-Stalled: " + asked in stalled
            while messages < 40:
                desk.router.publish(asked, b"", b"", b"")
                heard = await ear.next()
                while heard.header_block.startswith(b"NATS/1.0 100 Idle"):
                    heard = await ear.next()
                if heard.header_block:
                    asked = heard.reply
                else:
                    messages += 1

    asyncio.run(main())


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
