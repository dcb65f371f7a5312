"""Requests about consumers: what may stand beside what, what may change, and beginning anew."""

import asyncio
from pathlib import Path

from support.jetstream_in_process import served


def code(answer: dict[str, object]) -> object:
    error = answer.get("error")
    return error["err_code"] if isinstance(error, dict) else None


def test_consumers_of_a_work_queue_share_no_subject(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S", retention="workqueue")
            assert code(await desk.consume("S", "a", ack_policy="none")) == 10084
            assert code(await desk.consume("S", "a", ack_policy="explicit", deliver_policy="new")) == 10101
            assert code(await desk.consume("S", "a", ack_policy="explicit", filter_subject="S.a")) is None
            assert code(await desk.consume("S", "b", ack_policy="explicit", filter_subject="S.b")) is None
            assert code(await desk.consume("S", "c", ack_policy="explicit", filter_subject="S.*")) == 10100
            assert code(await desk.consume("S", "d", ack_policy="explicit")) == 10099

    asyncio.run(main())


def test_with_retention_by_interest_a_message_stays_until_all_have_settled_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S", retention="interest")
            await desk.publish("S.a", b"nobody wants it")
            await desk.consume("S", "one", durable_name="one", ack_policy="explicit")
            await desk.consume("S", "two", durable_name="two", ack_policy="explicit", filter_subject="S.b")
            await desk.publish("S.a", b"for one")
            await desk.publish("S.b", b"for both")
            for number in range(2):
                message = await desk.ask("$JS.API.CONSUMER.MSG.NEXT.S.one", b"1")
                await desk.ask(message.reply.decode(), b"+ACK")
                left = (await desk.api("STREAM.INFO.S"))["state"]["messages"]
                assert left == 1, f"after ack {number}"
            await desk.api("CONSUMER.DELETE.S.two")
            assert (await desk.api("STREAM.INFO.S"))["state"]["messages"] == 0

    asyncio.run(main())


def test_a_reset_begins_anew(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            for _ in range(5):
                await desk.publish("S.a")
            await desk.consume("S", "c", durable_name="c", ack_policy="explicit")
            message = await desk.ask("$JS.API.CONSUMER.MSG.NEXT.S.c", b"1")
            await desk.ask(message.reply.decode(), b"+ACK")
            answer = await desk.api("CONSUMER.RESET.S.c")
            assert (answer["reset_seq"], answer["num_pending"]) == (2, 4)
            answer = await desk.api("CONSUMER.RESET.S.c", {"seq": 4})
            assert (answer["reset_seq"], answer["num_pending"], answer["delivered"]["stream_seq"]) == (4, 2, 3)

    asyncio.run(main())


def test_a_pull_consumer_does_not_become_a_push_consumer(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            await desk.consume("S", "c", durable_name="c", ack_policy="explicit")
            assert (
                code(await desk.consume("S", "c", durable_name="c", ack_policy="explicit", deliver_subject="to"))
                == 10012
            )
            for settings, number in (
                ({"deliver_subject": "to.*"}, 10079),
                ({"deliver_subject": "S.x"}, 10081),
                ({"deliver_subject": "to", "max_waiting": 1}, 10080),
                ({"deliver_subject": "to", "flow_control": True}, 10108),
                ({"deliver_subject": "to", "idle_heartbeat": 5}, 10083),
            ):
                assert code(await desk.consume("S", "p", **settings)) == number

    asyncio.run(main())


def test_a_consumer_is_what_it_was_when_its_pause_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            config = {"name": "c", "durable_name": "c", "ack_policy": "explicit"}
            create = {"stream_name": "S", "config": config, "action": "create"}
            before = await desk.api("CONSUMER.CREATE.S.c", create)
            for until in ("2020-01-01T00:00:00Z", "2199-01-01T00:00:00Z"):
                await desk.api("CONSUMER.PAUSE.S.c", {"pause_until": until})
                paused = await desk.api("CONSUMER.INFO.S.c")
                assert paused["config"]["metadata"]["_nats.req.level"] == "1"
                await desk.api("CONSUMER.PAUSE.S.c")
                again = await desk.api("CONSUMER.CREATE.S.c", create)
                assert again["config"]["metadata"] == before["config"]["metadata"]

    asyncio.run(main())


def test_a_pause_survives_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            await desk.consume("S", "c", durable_name="c", ack_policy="explicit")
            await desk.api("CONSUMER.PAUSE.S.c", {"pause_until": "2199-01-01T00:00:00Z"})
        async with served(tmp_path) as desk:
            info = await desk.api("CONSUMER.INFO.S.c")
            assert info["paused"]
            assert info["config"]["pause_until"] == "2199-01-01T00:00:00Z"

    asyncio.run(main())
