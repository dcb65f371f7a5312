"""The client without asyncio does what the other one does."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.errors import ConnectionClosed, IggyError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_client.auto_commit import AutoCommit, Moment
from headwater.iggy_client.client import Client
from headwater.iggy_client.consumer import ConsumerOptions, TopicConsumer
from headwater.iggy_client.producer import Producer
from headwater.iggy_client.sync import connect
from headwater.iggy_client.sync_types import SyncClient, SyncProducer, SyncTopicConsumer
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.message_codec import ReceivedMessage
from headwater.net.loop_thread import LoopThread


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    loop, iggy = LoopThread(), Iggy(IggyOptions(tcp=("127.0.0.1", 0)), tmp_path)
    loop.run(iggy.__aenter__())
    try:
        yield f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}"
    finally:
        loop.run(iggy.__aexit__(None, None, None))
        loop.stop()


def test_calls_block_and_consumers_are_iterated(url: str) -> None:
    with connect(url) as client:
        client.create_stream("s")
        with client.producer("s", "t") as producer:
            assert producer.send([Message(b"%d" % number) for number in range(5)])[0].base_offset == 0
        options = ConsumerOptions(auto_commit=AutoCommit(at=Moment.EACH, after=True), batch=2)
        got = []
        for message in client.consumer("s", "t", group="g", options=options):
            got.append(message.payload)
            if len(got) == 4:
                break
        over = threading.Event()

        def last(message: ReceivedMessage) -> None:
            got.append(message.payload)
            over.set()

        second = client.consumer("s", "t", group="g", options=options)
        second.consume(last, over)
        second.close()
        assert got == [b"0", b"1", b"2", b"3", b"3"]
        assert client.topic("s", "none") is None and client.is_connected
        with pytest.raises(IggyError, match="stream_name_already_exists"):
            client.create_stream("s")
    with pytest.raises(ConnectionClosed):
        client.ping()
    client.close()


def test_an_event_ends_a_consumer_that_finds_nothing(url: str) -> None:
    with connect(url) as client:
        client.create_stream("s")
        client.create_topic("s", "t")
        over = threading.Event()
        over.set()
        client.consumer("s", "t").consume(print, over)


@pytest.mark.parametrize(
    ("asynchronous", "blocking"),
    [(Client, SyncClient), (TopicConsumer, SyncTopicConsumer), (Producer, SyncProducer)],
)
def test_the_signatures_name_every_method(asynchronous: type, blocking: type) -> None:
    left_out = {"forget_partitions", "request_read"}  # of the library itself
    names = {name for name in dir(asynchronous) if not name.startswith("_")} - left_out
    assert names <= set(dir(blocking))


def test_a_log_in_that_fails_leaves_no_thread(url: str) -> None:
    before = threading.active_count()
    with pytest.raises(IggyError, match="invalid_credentials"):
        connect(url.replace("iggy:iggy@", "iggy:wrong@"))
    assert threading.active_count() == before
