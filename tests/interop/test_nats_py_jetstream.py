"""nats-py's JetStream client on our broker: the path that a Spark source or a service walks, with its own expectations.

The same tests run against the real nats-server, which proves them.
"""

import asyncio
from collections.abc import Awaitable, Callable

import nats
import nats.errors
import pytest
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig
from nats.js.errors import APIError, BadRequestError, NotFoundError
from support.scenarios import play_nats_py

pytestmark = pytest.mark.interop

FETCH_TIMEOUT = 5.0


Scenario = Callable[[JetStreamContext], Awaitable[None]]


def play(url: str, scenario: Scenario) -> None:
    play_nats_py(url, lambda client: scenario(client.jetstream(timeout=FETCH_TIMEOUT)))


def replay_from(sequence: int) -> ConsumerConfig:
    """An ephemeral consumer that replays from a sequence and needs no acknowledgements."""
    return ConsumerConfig(
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=sequence,
        ack_policy=AckPolicy.NONE,
        inactive_threshold=60.0,
    )


def test_a_stream_is_created_looked_up_listed_and_deleted(url: str) -> None:
    async def scenario(stream: JetStreamContext) -> None:
        created = await stream.add_stream(name="life", subjects=["life.>", "birth"])
        assert created.config.name == "life"
        assert created.config.subjects == ["life.>", "birth"]
        assert created.state.messages == 0
        info = await stream.stream_info("life")
        assert (info.state.first_seq, info.state.last_seq) == (0, 0)
        assert await stream.find_stream_name_by_subject("life.of.brian") == "life"
        again = await stream.add_stream(name="life", subjects=["life.>", "birth"])
        assert again.config.subjects == created.config.subjects, "creating it again as it is changes nothing"
        with pytest.raises(BadRequestError) as refused:
            await stream.add_stream(name="life", subjects=["other"])
        assert refused.value.err_code == 10058
        assert await stream.delete_stream("life")
        with pytest.raises(NotFoundError) as missing:
            await stream.stream_info("life")
        assert missing.value.err_code == 10059

    play(url, scenario)


def test_a_publish_is_acknowledged_with_stream_and_sequence(url: str) -> None:
    async def scenario(stream: JetStreamContext) -> None:
        await stream.add_stream(name="acks", subjects=["acks.>"])
        for number in range(1, 6):
            ack = await stream.publish("acks.a", b"%d" % number)
            assert (ack.stream, ack.seq, bool(ack.duplicate)) == ("acks", number, False)
        state = (await stream.stream_info("acks")).state
        assert (state.messages, state.first_seq, state.last_seq) == (5, 1, 5)

    play(url, scenario)


def test_the_same_message_id_is_stored_once(url: str) -> None:
    async def scenario(stream: JetStreamContext) -> None:
        await stream.add_stream(name="once", subjects=["once.>"])
        first = await stream.publish("once.a", b"1", headers={"Nats-Msg-Id": "commit-1"})
        second = await stream.publish("once.a", b"1", headers={"Nats-Msg-Id": "commit-1"})
        third = await stream.publish("once.a", b"2", headers={"Nats-Msg-Id": "commit-2"})
        assert (first.seq, bool(first.duplicate)) == (1, False)
        assert (second.seq, second.duplicate) == (1, True)
        assert (third.seq, bool(third.duplicate)) == (2, False)
        assert (await stream.stream_info("once")).state.messages == 2

    play(url, scenario)


def test_many_publishes_in_flight_are_all_acknowledged(url: str) -> None:
    async def scenario(stream: JetStreamContext) -> None:
        await stream.add_stream(name="many", subjects=["many.>"])
        acks = await asyncio.gather(*(stream.publish("many.x", b"%d" % number) for number in range(500)))
        assert sorted(ack.seq for ack in acks) == list(range(1, 501))

    play(url, scenario)


def test_a_pull_consumer_replays_from_a_start_sequence(url: str) -> None:
    async def scenario(stream: JetStreamContext) -> None:
        await stream.add_stream(name="replay", subjects=["replay.>"])
        for number in range(1, 21):
            await stream.publish(f"replay.{number % 3}", b"body %d" % number, headers={"Number": str(number)})
        for start in (1, 8, 20):
            info = await stream.add_consumer("replay", replay_from(start))
            reader = await stream.pull_subscribe_bind(info.name, "replay")
            expected = list(range(start, 21))
            messages: list[Msg] = []
            while len(messages) < len(expected):
                messages += await reader.fetch(batch=7, timeout=FETCH_TIMEOUT)
            assert [message.metadata.sequence.stream for message in messages] == expected
            assert [message.metadata.sequence.consumer for message in messages] == list(range(1, len(expected) + 1))
            assert [message.data for message in messages] == [b"body %d" % number for number in expected]
            assert [message.subject for message in messages] == [f"replay.{number % 3}" for number in expected]
            assert [(message.headers or {})["Number"] for message in messages] == [str(number) for number in expected]
            assert messages[-1].metadata.num_pending == 0
            with pytest.raises(nats.errors.TimeoutError):
                await reader.fetch(batch=1, timeout=0.3)

    play(url, scenario)


def test_a_fetch_that_waits_gets_what_is_published_meanwhile(url: str) -> None:
    async def scenario(stream: JetStreamContext) -> None:
        await stream.add_stream(name="wait", subjects=["wait.>"])
        info = await stream.add_consumer("wait", replay_from(1))
        reader = await stream.pull_subscribe_bind(info.name, "wait")
        fetching = asyncio.create_task(reader.fetch(batch=1, timeout=FETCH_TIMEOUT))
        await stream.consumer_info("wait", info.name)  # the pull went out before this request on the same connection
        await stream.publish("wait.a", b"now")
        assert [message.data for message in await fetching] == [b"now"]

    play(url, scenario)


def test_header_blocks_come_back_as_they_went_in(url: str) -> None:
    async def scenario(stream: JetStreamContext) -> None:
        await stream.add_stream(name="blocks", subjects=["blocks.>"])
        headers = {"ce-id": "1", "ce-source": "/a:b", "Nats-Msg-Id": "m-1", "lower": "x y"}
        await stream.publish("blocks.a", b"{}", headers=headers)
        info = await stream.add_consumer("blocks", replay_from(1))
        reader = await stream.pull_subscribe_bind(info.name, "blocks")
        (message,) = await reader.fetch(batch=1, timeout=FETCH_TIMEOUT)
        assert message.headers == headers

    play(url, scenario)


def test_requests_about_what_does_not_exist_are_answered_with_its_code(url: str) -> None:
    async def scenario(stream: JetStreamContext) -> None:
        await stream.add_stream(name="codes", subjects=["codes.>"])
        with pytest.raises(APIError) as overlap:
            await stream.add_stream(name="codes2", subjects=["codes.*"])
        assert overlap.value.err_code == 10065
        with pytest.raises(NotFoundError) as stream_missing:
            await stream.add_consumer("nowhere", replay_from(1))
        assert stream_missing.value.err_code == 10059
        with pytest.raises(NotFoundError) as consumer_missing:
            await stream.consumer_info("codes", "nobody")
        assert consumer_missing.value.err_code == 10014
        with pytest.raises(nats.js.errors.NoStreamResponseError):
            await stream.publish("captured.by.nobody", b"")

    play(url, scenario)


def test_account_information_counts_streams(url: str) -> None:
    async def scenario(stream: JetStreamContext) -> None:
        before = (await stream.account_info()).streams
        await stream.add_stream(name="counted", subjects=["counted"])
        assert (await stream.account_info()).streams == before + 1

    play(url, scenario)


def test_what_a_publisher_expects_holds_or_nothing_is_stored(url: str) -> None:
    async def scenario(stream: JetStreamContext) -> None:
        await stream.add_stream(
            StreamConfig(name="expect", subjects=["expect.>"], max_msgs_per_subject=2, allow_rollup_hdrs=True)
        )
        await stream.publish("expect.a", b"1", headers={"Nats-Msg-Id": "one"})
        for headers, number in (
            ({"Nats-Expected-Stream": "other"}, 10060),
            ({"Nats-Expected-Last-Sequence": "5"}, 10071),
            ({"Nats-Expected-Last-Subject-Sequence": "5"}, 10071),
            ({"Nats-Expected-Last-Subject-Sequence-Subject": "expect.a"}, 10193),
            ({"Nats-Expected-Last-Msg-Id": "two"}, 10070),
            ({"Nats-Rollup": "some"}, 10111),
        ):
            with pytest.raises(APIError) as refused:
                await stream.publish("expect.a", b"no", headers=headers)
            assert refused.value.err_code == number
        met = {"Nats-Expected-Last-Sequence": "1", "Nats-Expected-Last-Msg-Id": "one", "Nats-Expected-Stream": "expect"}
        assert (await stream.publish("expect.a", b"2", headers=met)).seq == 2
        other = {
            "Nats-Expected-Last-Subject-Sequence": "2",
            "Nats-Expected-Last-Subject-Sequence-Subject": "expect.a",
        }
        assert (await stream.publish("expect.b", b"3", headers=other)).seq == 3
        await stream.publish("expect.a", b"4")
        assert (await stream.stream_info("expect")).state.messages == 3, "two of a, one of b"
        await stream.publish("expect.b", b"5", headers={"Nats-Rollup": "all"})
        assert (await stream.stream_info("expect")).state.messages == 1

    play(url, scenario)


def test_messages_are_put_off_given_up_and_kept_busy(url: str) -> None:
    async def scenario(stream: JetStreamContext) -> None:
        await stream.add_stream(name="settle", subjects=["settle.>"])
        for number in range(6):
            await stream.publish(f"settle.{number % 3}", b"%d" % number)
        config = ConsumerConfig(
            durable_name="settler",
            ack_policy=AckPolicy.EXPLICIT,
            filter_subjects=["settle.0", "settle.1"],
            backoff=[60.0, 120.0],
            max_deliver=3,
            max_ack_pending=4,
        )
        await stream.add_consumer("settle", config)
        reader = await stream.pull_subscribe_bind("settler", "settle")
        first = await reader.fetch(4, timeout=FETCH_TIMEOUT)
        assert [message.metadata.sequence.stream for message in first] == [1, 2, 4, 5]
        await first[0].nak(delay=0.05)
        await first[1].term()
        await first[2].in_progress()
        await first[3].ack_sync()
        for attempt in (2, 3):
            (again,) = await reader.fetch(1, timeout=FETCH_TIMEOUT)
            assert (again.metadata.sequence.stream, again.metadata.num_delivered) == (1, attempt)
            await again.nak()
        with pytest.raises(nats.errors.TimeoutError):  # delivered three times, and no more
            await reader.fetch(1, timeout=0.3, heartbeat=0.1)
        info = await stream.consumer_info("settle", "settler")
        assert (info.num_pending, info.num_redelivered is None) == (0, False)

    play(url, scenario)


def test_a_stream_is_changed_purged_by_subject_and_sequence_and_sealed(url: str) -> None:
    async def scenario(stream: JetStreamContext) -> None:
        config = StreamConfig(name="change", subjects=["change.>"], allow_direct=True)
        await stream.add_stream(config)
        for number in range(9):
            await stream.publish(f"change.{number % 3}", b"%d" % number)
        direct = await stream.get_msg("change", seq=4, direct=True)
        assert (direct.subject, direct.data) == ("change.0", b"3")
        last = await stream.get_last_msg("change", "change.2", direct=True)
        assert (last.seq, last.data) == (9, b"8")
        assert await stream.purge_stream("change", subject="change.0")
        assert await stream.purge_stream("change", seq=5)
        assert [(await stream.stream_info("change")).state.first_seq] == [5]
        assert await stream.purge_stream("change", keep=2)
        assert (await stream.stream_info("change", subjects_filter=">")).state.subjects == {
            "change.1": 1,
            "change.2": 1,
        }
        changed = await stream.update_stream(config.evolve(description="changed", max_msgs=5))
        assert (changed.config.description, changed.config.max_msgs) == ("changed", 5)
        with pytest.raises(APIError):
            await stream.update_stream(config.evolve(storage="memory"))
        await stream.update_stream(config.evolve(sealed=True))
        with pytest.raises(APIError) as sealed:
            await stream.publish("change.0", b"late")
        assert sealed.value.err_code == 10109
        with pytest.raises(APIError):
            await stream.delete_msg("change", 9)

    play(url, scenario)
