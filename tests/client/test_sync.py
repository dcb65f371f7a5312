"""The client without asyncio, on both servers: it blocks, it iterates, and it leaves no thread behind."""

import secrets
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.headwater_server import start_headwater

from headwater.client import sync
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.client.key_value import BucketConfig, KeyNotFound
from headwater.client.object_store import ObjectNotFound, StoreConfig
from headwater.errors import (
    ConnectionClosed,
    JetStreamError,
    LocalProtocolError,
    NoResponders,
    RequestTimeout,
    TransportError,
)
from headwater.model.message import Message


@pytest.fixture(scope="module")
def our_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("ours")
    with start_headwater(directory, "-js", "-sd", str(directory / "store")) as server:
        yield server.url


@pytest.fixture(params=[pytest.param("nats-server", marks=pytest.mark.interop), "headwater"])
def client(request: pytest.FixtureRequest) -> Iterator[sync.SyncClient]:
    if request.param == "headwater":
        url = request.getfixturevalue("our_url")
    else:
        url = request.getfixturevalue("real_server").url
    with sync.connect(url) as connected:
        yield connected
    assert not [each for each in threading.enumerate() if each.name == "headwater client"]


def test_publish_subscribe_and_request(client: sync.SyncClient) -> None:
    subject = f"test.{secrets.token_hex(4)}"
    subscription = client.subscribe(f"{subject}.>", max_messages=4)
    client.publish(f"{subject}.a", b"1", headers={"K": "v"})
    client.publish_many([(f"{subject}.b", b"2"), (f"{subject}.c", b"3")])
    assert subscription.next(5).headers["K"] == "v"
    with pytest.raises(NoResponders):
        client.request(f"{secrets.token_hex(4)}.nobody")
    client.subscribe(f"{subject}.service", callback=lambda message: message.respond(b"answer"))
    assert client.request(f"{subject}.service", timeout=5).data == b"answer"
    assert [message.data for message in subscription] == [b"2", b"3", b""]
    with pytest.raises(ConnectionClosed):
        subscription.next(1)
    silent = client.subscribe(subject)
    with pytest.raises(RequestTimeout):
        silent.next(0.01)
    silent.drain()
    assert (silent.pending, silent.dropped) == (0, 0)


def test_a_callback_publishes_and_what_would_wait_for_ever_is_an_error(client: sync.SyncClient) -> None:
    subject = f"test.{secrets.token_hex(4)}"
    errors: list[LocalProtocolError] = []

    def callback(message: Message) -> None:
        with pytest.raises(LocalProtocolError, match="in the client's own thread") as caught:
            client.request(f"{subject}.other", timeout=1)
        errors.append(caught.value)
        client.publish(f"{subject}.copy", message.data)
        client.respond(message, b"answer")

    copies = client.subscribe(f"{subject}.copy")
    client.subscribe(f"{subject}.service", callback=callback)
    assert client.request(f"{subject}.service", b"question", timeout=5).data == b"answer"
    assert copies.next(5).data == b"question"
    assert len(errors) == 1


def test_jetstream_buckets_and_consumers_block(client: sync.SyncClient) -> None:
    name = f"S{secrets.token_hex(4)}"
    jetstream = client.jetstream()
    jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    for number in range(5):
        assert jetstream.publish(f"{name}.a", b"%d" % number).seq == number + 1
    with jetstream.publisher() as publisher:
        publisher.publish(f"{name}.a", b"5")
    assert [message.data for message in jetstream.ordered_consumer(name, stop_at_end=True)] == [
        b"%d" % number for number in range(6)
    ]
    jetstream.create_consumer(name, ConsumerConfig(durable_name="D"))
    for message in jetstream.pull_consumer(name, "D").fetch(6):
        message.ack(confirm=5)
    assert jetstream.consumer_info(name, "D").num_ack_pending == 0
    with pytest.raises(JetStreamError):
        jetstream.stream_info("nowhere")
    values = jetstream.create_key_value(BucketConfig(bucket=name))
    values.put("k", b"v")
    assert values.get("k").value == b"v"
    assert values.keys() == ["k"]
    with pytest.raises(KeyNotFound):
        values.get("x")
    for entry in values.watch():
        assert entry.key == "k"
        break
    jetstream.delete_key_value(name)
    jetstream.delete_stream(name)


def test_all_of_jetstream_and_the_stores_block(client: sync.SyncClient, tmp_path: Path) -> None:
    name = f"S{secrets.token_hex(4)}"
    jetstream = client.jetstream()
    jetstream.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], allow_direct=True))
    with jetstream.publisher(window=10) as publisher:
        for number in range(25):
            publisher.publish(f"{name}.a", b"%d" % number, msg_id=str(number))
    assert (publisher.acknowledged, publisher.outstanding) == (25, 0)
    assert jetstream.get_message(name, 3, direct=True).data == b"2"
    assert [info.config.name for info in jetstream.streams(f"{name}.a")] == [name]
    jetstream.create_consumer(name, ConsumerConfig(durable_name="D"))
    with jetstream.pull_consumer(name, "D").consume(10) as messages:
        for message, number in zip(messages, range(25), strict=False):
            assert message.data == b"%d" % number
            message.ack()
            if number == 24:
                break
    with jetstream.push_consumer(name, ConsumerConfig(idle_heartbeat=1, flow_control=True)) as pushed:
        assert next(iter(pushed)).data == b"0"
    assert jetstream.purge_stream(name, keep=5) == 20
    store = jetstream.create_object_store(StoreConfig(bucket=name))
    source = tmp_path / "object"
    source.write_bytes(bytes(300_000))
    with source.open("rb") as file:
        assert store.put("o", file).chunks == 3
    assert store.get("o") == bytes(300_000)
    assert sum(len(chunk) for chunk in store.chunks("o")) == 300_000
    assert [info.name for info in store.objects()] == ["o"]
    for info in store.watch():
        assert info.name == "o"
        break
    store.delete("o")
    with pytest.raises(ObjectNotFound):
        store.get("o")
    values = jetstream.create_key_value(BucketConfig(bucket=name, history=3))
    assert [values.put("k", b"%d" % number) for number in range(3)] == [1, 2, 3]
    assert [entry.value for entry in values.history("k")] == [b"0", b"1", b"2"]
    values.update("k", b"x", 3)
    values.delete("k")
    for clean in (jetstream.delete_key_value, jetstream.delete_object_store, jetstream.delete_stream):
        assert clean(name)


def test_a_closed_client_says_so_and_a_server_that_is_not_there_too(client: sync.SyncClient) -> None:
    client.close()
    client.close()
    with pytest.raises(ConnectionClosed):
        client.publish("a")
    with pytest.raises(TransportError):
        sync.connect("nats://127.0.0.1:1")
