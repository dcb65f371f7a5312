"""JetStream through our client, on the real nats-server and on our broker."""

import secrets

import pytest
from support.both_servers import Serve
from support.scripted_server import conversation, finish

import headwater
from headwater.client.client import Client
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.errors import EnvironmentProblem, JetStreamError, NoResponders, SubjectError
from headwater.model.headers import Headers


async def make_stream(client: Client) -> str:
    """A stream of its own with the subjects `<name>.>`."""
    name = f"S{secrets.token_hex(4)}"
    await client.jetstream().create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    return name


def test_streams_are_made_found_described_and_deleted(serve: Serve) -> None:
    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            jetstream = client.jetstream()
            name = await make_stream(client)
            again = await jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
            assert again.config.name == name
            assert name in await jetstream.stream_names()
            assert await jetstream.stream_names(f"{name}.x") == [name]
            await jetstream.publish(f"{name}.a", b"12345")
            info = await jetstream.stream_info(name)
            assert (info.state.messages, info.state.first_seq, info.state.last_seq) == (1, 1, 1)
            with pytest.raises(JetStreamError) as caught:
                await jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.other"]))
            assert caught.value.err_code == 10058
            assert await jetstream.delete_stream(name)
            assert not await jetstream.delete_stream(name)
            with pytest.raises(JetStreamError, match="stream not found"):
                await jetstream.stream_info(name)

    finish(main(), 30)


def test_a_publish_is_acknowledged_and_its_id_makes_it_unique(serve: Serve) -> None:
    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            jetstream = client.jetstream()
            name = await make_stream(client)
            headers = Headers({"K": ["1", "2"]})
            first = await jetstream.publish(f"{name}.a", b"1", headers=headers, msg_id="one")
            second = await jetstream.publish(f"{name}.a", b"1", msg_id="one")
            third = await jetstream.publish(f"{name}.a", b"2", msg_id="two")
            assert [(ack.stream, ack.seq, ack.duplicate) for ack in (first, second, third)] == [
                (name, 1, False),
                (name, 1, True),
                (name, 2, False),
            ]
            assert "Nats-Msg-Id" not in headers  # the program's own headers were not touched

    finish(main(), 30)


def test_a_subject_that_no_stream_captures_is_told_at_once(serve: Serve) -> None:
    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            with pytest.raises(NoResponders, match="no stream captures"):
                await client.jetstream().publish("nobody.there", b"")
            with pytest.raises(NoResponders, match="no stream captures"):
                async with client.jetstream().publisher() as publisher:
                    await publisher.publish("nobody.there", b"")

    finish(main(), 30)


def test_a_publisher_with_a_window_stores_each_message_once_in_order(serve: Serve) -> None:
    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            jetstream = client.jetstream()
            name = await make_stream(client)
            for expected in (0, 1_000):
                async with jetstream.publisher(window=128) as publisher:
                    for number in range(1_000):
                        await publisher.publish(f"{name}.a", b"%d" % number, msg_id=str(number))
                assert (publisher.acknowledged, publisher.duplicates) == (1_000, expected)
                assert publisher.last_sequence == 1_000
            consumer = await jetstream.create_consumer(name, ConsumerConfig(ack_policy="none"))
            batch = await jetstream.pull_consumer(name, consumer.name).fetch(1_000)
            assert [int(message.data) for message in batch] == list(range(1_000))

    finish(main(), 60)


def test_an_ephemeral_consumer_replays_from_a_sequence(serve: Serve) -> None:
    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            jetstream = client.jetstream()
            name = await make_stream(client)
            for number in range(1, 11):
                await jetstream.publish(f"{name}.{number}", b"%d" % number, headers={"K": [str(number), "x"]})
            consumer = await jetstream.create_consumer(
                name, ConsumerConfig(deliver_policy="by_start_sequence", opt_start_seq=4, ack_policy="none")
            )
            assert (consumer.stream_name, consumer.num_pending) == (name, 7)
            pull = jetstream.pull_consumer(name, consumer.name)
            first = await pull.fetch(5, timeout=5)
            rest = await pull.fetch(5, no_wait=True)
            assert [message.metadata.stream_seq for message in first + rest] == [4, 5, 6, 7, 8, 9, 10]
            assert [message.metadata.consumer_seq for message in first + rest] == [1, 2, 3, 4, 5, 6, 7]
            assert (first[0].metadata.stream, first[0].metadata.consumer) == (name, consumer.name)
            assert first[0].metadata.timestamp_ns > 1_500_000_000 * 10**9
            assert rest[-1].metadata.pending == 0
            assert first[0].subject == f"{name}.4"
            assert first[0].headers.get_all("K") == ["4", "x"]
            assert await pull.fetch(5, no_wait=True) == []
            assert await pull.fetch(5, timeout=0.05) == []
            assert await jetstream.delete_consumer(name, consumer.name)
            with pytest.raises(NoResponders, match=consumer.name):
                await pull.fetch(1, timeout=1)

    finish(main(), 30)


def test_an_acknowledged_message_does_not_come_again_and_a_refused_one_does(serve: Serve) -> None:
    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            jetstream = client.jetstream()
            name = await make_stream(client)
            for number in range(3):
                await jetstream.publish(f"{name}.a", b"%d" % number)
            consumer = await jetstream.create_consumer(name, ConsumerConfig(ack_policy="explicit"))
            pull = jetstream.pull_consumer(name, consumer.name)
            first, second, third = await pull.fetch(3)
            await first.ack(confirm=5)
            await second.nak()
            await third.term()
            (again,) = await pull.fetch(1, timeout=5)
            assert (again.data, again.metadata.delivered) == (b"1", 2)
            await again.ack(confirm=5)
            await client.flush()
            info = await jetstream.consumer_info(name, consumer.name)
            assert (info.num_ack_pending, info.ack_floor.stream_seq) == (0, 3)

    finish(main(), 30)


def test_a_direct_get_tells_where_a_message_is_from_where_it_was_republished(serve: Serve) -> None:
    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            jetstream = client.jetstream()
            name = f"S{secrets.token_hex(4)}"
            await jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], allow_direct=True))
            headers = Headers({"Nats-Stream": "SOURCE", "Nats-Subject": "source.x", "Nats-Sequence": "77", "A": "1"})
            await jetstream.publish(f"{name}.x", b"1")
            await jetstream.publish(f"{name}.y", b"2", headers=headers)
            for found in (
                await jetstream.get_message(name, 2, direct=True),
                await jetstream.get_message(name, last_on=f"{name}.y", direct=True),
            ):
                assert (found.subject, found.seq, found.headers) == (f"{name}.y", 2, headers)

    finish(main(), 30)


def test_a_server_without_jetstream_is_told_with_the_way_out() -> None:
    async def main() -> None:
        async with headwater.Broker() as broker, await headwater.connect(broker.url) as client:
            with pytest.raises(EnvironmentProblem, match="no JetStream"):
                await client.jetstream().stream_info("S")

    finish(main())


@pytest.mark.parametrize("name", ["", "a b", "a.b", "*", ">", "a/b", "a\\b", "a\r\n"])
def test_a_name_that_would_be_another_request_is_refused(name: str) -> None:
    async def main() -> None:
        async with conversation() as (client, _):
            jetstream = client.jetstream()
            for ask in (
                jetstream.stream_info(name),
                jetstream.delete_stream(name),
                jetstream.create_stream(StreamConfig(name=name)),
                jetstream.create_consumer(name, ConsumerConfig()),
                jetstream.consumer_info("S", name),
            ):
                with pytest.raises(SubjectError):
                    await ask
            with pytest.raises(SubjectError):
                jetstream.pull_consumer("S", name)

    finish(main())
