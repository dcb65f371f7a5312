"""/eventz, and the log beside it: who was refused what, and never with what."""

import asyncio
import logging
from pathlib import Path

import pytest
from support.monitored import monitored
from support.raw_wire import RawLink, connect_op

import headwater
from headwater.client.jetstream_types import Republish, StreamConfig
from headwater.errors import JetStreamError
from headwater.options.access import AuthorizationOptions, Permissions, SubjectRules, UserOptions

PASSWORD = "the-passw0rd"
ANN = UserOptions(
    username="ann",
    password=PASSWORD,
    permissions=Permissions(
        publish=SubjectRules(allow=("ok.>",)), subscribe=SubjectRules(allow=("ok.>",), deny=("ok.no",))
    ),
)


def misbehave(port: int) -> None:
    with RawLink(port) as link:
        link.send(connect_op(user="mallory", **{"pass": "wrong-guess", "auth_token": "wrong-guess"}))
        assert b"Authorization Violation" in link.receive_end()
    with RawLink(port) as link:
        link.send(connect_op(user="ann", **{"pass": PASSWORD}))
        answer = link.answer(b"PUB no.way 0\r\n\r\nSUB ok.no 1\r\nPUB ok.x $JS.ACK.a 0\r\n\r\n")
        assert answer.output.count(b"Permissions Violation") == 3


def test_refusals_are_listed_counted_and_logged_with_who_and_what_and_without_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        options = AuthorizationOptions(users=(ANN,))
        async with monitored(authorization=options) as server:
            await asyncio.to_thread(misbehave, server.broker.port)
            page = (await server.ask("/eventz")).document
            reported = [(event["kind"], event["user"], event.get("subject")) for event in page["events"]]
            assert reported == [
                ("publish_refused", "ann", "ok.x"),
                ("subscription_refused", "ann", "ok.no"),
                ("publish_refused", "ann", "no.way"),
                ("login_failed", "mallory", None),
            ]
            for event in page["events"]:
                assert event["address"].startswith("127.0.0.1:") and event["time"].endswith("Z")
            assert page["events"][0]["account"] == "$G" and page["events"][0]["reply"] == "$JS.ACK.a"
            assert page["counts"]["publish_refused"] == 2 and page["counts"]["login_failed"] == 1
            only = (await server.ask("/eventz?kind=login_failed&limit=1")).document
            assert [event["kind"] for event in only["events"]] == ["login_failed"]
            assert (await server.ask("/eventz?kind=nothing")).status == 400
            assert (await server.ask("/varz")).document["events"]["publish_refused"] == 2
            metrics = (await server.ask("/metrics")).body.decode()
            assert "gnatsd_varz_events_publish_refused{" in metrics

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert [line.split()[0] for line in errors] == [
        "login_failed", "publish_refused", "subscription_refused", "publish_refused",
    ]  # fmt: skip
    assert PASSWORD not in caplog.text and "wrong-guess" not in caplog.text


def test_writes_that_found_no_room_are_listed_and_mistakes_of_publishers_are_not(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            async with await headwater.connect(server.broker.url) as client:
                jetstream = client.jetstream()
                config = StreamConfig(name="S", subjects=["s"], max_msgs=1, discard="new", storage="memory")
                await jetstream.create_stream(config)
                await jetstream.publish("s", b"")
                for expected in ("S", "T", "S"):
                    with pytest.raises(JetStreamError):
                        await jetstream.publish("s", b"", headers={"Nats-Expected-Stream": expected})
            (event,) = (await server.ask("/eventz")).document["events"]
            assert (event["kind"], event["account"], event["stream"], event["error"]) == (
                "write_refused",
                "$G",
                "S",
                10077,
            )
            assert (event["reason"], event["times"]) == ("maximum messages exceeded", 2)

    asyncio.run(main())


def test_a_republished_message_that_another_stream_refuses_is_listed(tmp_path: Path) -> None:
    """It keeps its headers, also those that the first stream alone can meet, and asks for no answer."""

    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            async with await headwater.connect(server.broker.url) as client:
                jetstream = client.jetstream()
                again = Republish(src=">", dest="again.>")
                await jetstream.create_stream(StreamConfig(name="S", subjects=["s"], republish=again))
                await jetstream.create_stream(StreamConfig(name="T", subjects=["again.>"]))
                for _ in range(2):
                    await jetstream.publish("s", b"", headers={"Nats-Expected-Stream": "S"})
                await jetstream.publish("s", b"")
                assert (await jetstream.stream_info("T")).state.messages == 1
            (event,) = (await server.ask("/eventz")).document["events"]
            found = [event[name] for name in ("kind", "account", "stream", "error", "times")]
            assert found == ["refusal_unanswered", "$G", "T", 10060, 2]

    asyncio.run(main())
