"""Run in a process of its own by the tests of the Iggy face: one released client, its whole conversation.

    python iggy_peer_program.py HOST PORT [prefix]

Every step prints one line of JSON, `{"step": name, "value": ...}` or `{"step": name, "error": text}`. The process is
judged by these lines and not by how it ends: some releases die in their own clean-up after all is done.
"""

import asyncio
import inspect
import json
import sys
from typing import Any

GROUP_MESSAGES = 6


async def finished(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def print_entry(entry: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(entry) + "\n")
    sys.stdout.flush()


async def step(name: str, call: Any, show: Any = lambda value: None) -> Any:
    """Do one thing within ten seconds and say what came of it."""
    try:
        async with asyncio.timeout(10):
            value = await finished(call())
        print_entry({"step": name, "value": show(value)})
    except Exception as error:  # noqa: BLE001  (each release raises its own, and the next step goes on)
        print_entry({"step": name, "error": f"{type(error).__name__}: {error}"[:300]})
        return None
    return value


def shown(messages: Any) -> list[Any]:
    found = []
    for message in messages:
        entry = [message.offset(), message.payload().decode()]
        headers = message.user_headers() if hasattr(message, "user_headers") else None
        found.append([*entry, headers.to_scalar_dict()] if headers else entry)
    return found


class OfApache:
    """The package `apache_iggy`, 0.5 to 0.9.1."""

    def __init__(self, address: str, quic: bool = False) -> None:
        import apache_iggy

        self.module: Any = apache_iggy
        self.is_modern = hasattr(apache_iggy, "Consumer")
        if quic:
            config = self.module.QuicConfig(server_address=address, validate_certificate=False)
            self.client: Any = apache_iggy.IggyClient(config)
        elif self.is_modern:
            self.client = apache_iggy.IggyClient.from_connection_string(f"iggy://iggy:iggy@{address}")
        else:
            self.client = apache_iggy.IggyClient(address)

    def create_topic(self, stream: str, topic: str, partitions: int) -> Any:
        options = getattr(self.module, "TopicOptions", None)  # since 0.9.1
        return self.client.create_topic(
            stream, topic, options(partitions_count=partitions) if options is not None else partitions
        )

    def message(self, text: str) -> Any:
        return self.module.SendMessage(text)

    def poll(self, stream: str, topic: str, partition: int, strategy: Any, count: int, commit: bool = False) -> Any:
        if not self.is_modern:
            return self.client.poll_messages(stream, topic, partition, strategy, count, commit)
        return self.client.poll_messages(
            stream,
            topic,
            consumer=self.module.Consumer.Single(1),
            polling_strategy=strategy,
            count=count,
            auto_commit=commit,
            partition_id=partition,
        )

    async def group(self, stream: str, topic: str) -> list[str]:
        strategy = self.module.PollingStrategy.Next()
        consumer = await finished(self.client.consumer_group("group1", stream, topic, None, strategy, 10))
        got: list[str] = []
        enough = asyncio.Event()

        async def take(message: Any) -> None:
            got.append(message.payload().decode())
            if len(got) == GROUP_MESSAGES:
                enough.set()

        await consumer.consume_messages(take, enough)
        return sorted(got)

    async def offsets(self, stream: str, topic: str, first: int) -> list[str]:
        """Another group, whose offsets the program keeps: that of the last message of each partition; then the second
        partition's is deleted again."""
        strategy, by_hand = self.module.PollingStrategy.Next(), self.module.AutoCommit.Disabled()
        opened = self.client.consumer_group("group2", stream, topic, None, strategy, 10, auto_commit=by_hand)
        consumer = await finished(opened)
        got: list[tuple[int, int, str]] = []
        enough = asyncio.Event()

        async def take(message: Any) -> None:
            text = message.payload().decode()
            got.append((first + (text == "second"), message.offset(), text))
            if len(got) == GROUP_MESSAGES:
                enough.set()

        await consumer.consume_messages(take, enough)
        for partition, offset, _ in got:
            await finished(consumer.store_offset(offset, partition))
        await finished(consumer.delete_offset(first + 1))
        return sorted(text for _, _, text in got)

    async def iterate(self, stream: str, topic: str) -> list[str]:
        """A third group, read by iteration, committed as it goes."""
        strategy, module = self.module.PollingStrategy.Next(), self.module
        each = module.AutoCommit.When(module.AutoCommitWhen.ConsumingEachMessage())
        consumer = await finished(
            self.client.consumer_group("group3", stream, topic, None, strategy, 2, auto_commit=each)
        )
        got: list[str] = []
        async for message in consumer.iter_messages():
            got.append(message.payload().decode())
            if len(got) == GROUP_MESSAGES:
                break
        return sorted(got)


async def apache(address: str, first: int, prefix: str, quic: bool) -> None:
    peer = OfApache(address, quic)
    client, module = peer.client, peer.module
    stream, topic = f"{prefix}stream", f"{prefix}topic"
    await step("connect", client.connect)
    await step("login", lambda: client.login_user("iggy", "iggy"))
    await step("ping", client.ping)
    await step("create_stream", lambda: client.create_stream(stream))
    await step("get_stream", lambda: client.get_stream(stream), lambda found: [found.name, found.topics_count])
    await step("create_topic", lambda: peer.create_topic(stream, topic, 2))
    await step("get_topic", lambda: client.get_topic(stream, topic), lambda found: [found.name, found.partitions_count])
    texts = [f"{prefix}{number}" for number in range(GROUP_MESSAGES - 1)]
    await step("send", lambda: client.send_messages(stream, topic, first, [peer.message(text) for text in texts]))
    second = first + 1
    await step("send", lambda: client.send_messages(stream, topic, second, [peer.message("second")]))
    strategies = module.PollingStrategy
    await step("poll", lambda: peer.poll(stream, topic, first, strategies.First(), 10), shown)
    await step("poll_offset", lambda: peer.poll(stream, topic, first, strategies.Offset(3), 1), shown)
    await step("poll_last", lambda: peer.poll(stream, topic, first, strategies.Last(), 2), shown)
    for turn in ("first", "second", "third"):
        await step(f"poll_next_{turn}", lambda: peer.poll(stream, topic, first, strategies.Next(), 2, True), shown)
    await step("poll_empty", lambda: peer.poll(stream, topic, first, strategies.Offset(99), 2), shown)
    await step("poll_nowhere", lambda: peer.poll(stream, topic, 77, strategies.First(), 2), shown)
    await step("missing", lambda: client.get_stream("nothing"), lambda found: found is None)
    since_1970 = module.PollingStrategy.Timestamp(1)
    await step("poll_timestamp", lambda: peer.poll(stream, topic, first, since_1970, 2), shown)
    await step("group", lambda: peer.group(stream, topic), lambda got: got)
    await step("group_offsets", lambda: peer.offsets(stream, topic, first), lambda got: got)
    if hasattr(module, "ReceiveMessageIterator"):
        await step("group_iterated", lambda: peer.iterate(stream, topic), lambda got: got)
    if peer.is_modern:
        await headers(peer, stream, topic)
        await keyed(peer, stream, f"{prefix}keyed")
        await produced(peer, f"{prefix}made", "direct", None)
        await produced(peer, f"{prefix}made", "background", module.BackgroundProducerConfig())


async def produced(peer: OfApache, stream: str, topic: str, mode: Any) -> None:
    """By the client's own producer, which makes stream and topic: how many there are afterwards, and the last."""
    where = peer.module.Partitioning.partition_id(1)

    async def produce() -> None:
        opened = peer.client.producer(stream, topic, where, mode, topic_partitions_count=2)
        async with await opened as producer:
            for number in range(20):
                await producer.send([peer.module.SendMessage(f"{number}-{place}") for place in range(10)])

    await step(f"produce_{topic}", produce)
    first = peer.module.PollingStrategy.First()
    polling = peer.poll(stream, topic, 1, first, 1000)
    await step(f"poll_{topic}", lambda: polling, lambda found: [len(found), found[-1].payload().decode()])


async def keyed(peer: OfApache, stream: str, topic: str) -> None:
    """Where messages go by their keys: the payloads of each partition."""
    await step("create_keyed", lambda: peer.create_topic(stream, topic, 5))
    for key in (b"customer 5", b"\0", b"\xff" * 255, *(b"%d" % number for number in range(9))):
        where = peer.module.Partitioning.messages_key(key)
        message = peer.module.SendMessage(key.hex())
        await step("send_keyed", lambda to=where, sent=message: peer.client.send_messages(stream, topic, to, [sent]))
    first = peer.module.PollingStrategy.First()
    for number in range(5):
        await step(f"poll_keyed_{number}", lambda at=number: peer.poll(stream, topic, at, first, 20), shown)


async def headers(peer: OfApache, stream: str, topic: str) -> None:
    """Every kind that the client has, there and back."""
    key, value = peer.module.HeaderKey, peer.module.HeaderValue
    typed = {
        key.String("Key-2"): value.Bool(True),
        key.String("key 1"): value.String("value1"),
        key.String("key_3"): value.UnsignedInt64(123456),
        key.String("f"): value.Float64(123.45),
        key.String("i"): value.Int128(-5),
    }
    sent = [peer.module.SendMessage("with headers", user_headers=typed, id=7)]
    await step("send_headers", lambda: peer.client.send_messages(stream, topic, 0, sent))
    strategy = peer.module.PollingStrategy.Last()
    await step("poll_headers", lambda: peer.poll(stream, topic, 0, strategy, 1), shown)


async def older(address: str, prefix: str) -> None:
    """The package `iggy_py`: no groups, no headers, partitions from 1."""
    import iggy_py  # type: ignore[import-not-found]

    client = iggy_py.IggyClient(address)
    stream, topic = f"{prefix}stream", f"{prefix}topic"
    await step("connect", client.connect)
    await step("login", lambda: client.login_user("iggy", "iggy"))
    if hasattr(client, "ping"):
        await step("ping", client.ping)
    await step("create_stream", lambda: client.create_stream(name=stream))
    await step("get_stream", lambda: client.get_stream(stream), lambda found: [found.name, found.topics_count])
    await step("create_topic", lambda: client.create_topic(stream=stream, name=topic, partitions_count=2))
    await step("get_topic", lambda: client.get_topic(stream, topic), lambda found: found.name)
    texts = [iggy_py.SendMessage(f"{prefix}{number}") for number in range(5)]
    await step("send", lambda: client.send_messages(stream, topic, 1, texts))
    first, last = iggy_py.PollingStrategy.First(), iggy_py.PollingStrategy.Last()
    await step("poll", lambda: client.poll_messages(stream, topic, 1, first, 10, False), shown)
    await step("poll_last", lambda: client.poll_messages(stream, topic, 1, last, 2, False), shown)
    following = iggy_py.PollingStrategy.Next()
    for turn in ("first", "second", "third"):
        await step(f"poll_next_{turn}", lambda: client.poll_messages(stream, topic, 1, following, 2, True), shown)
    await step("poll_nowhere", lambda: client.poll_messages(stream, topic, 77, first, 10, False), shown)


if __name__ == "__main__":
    package, host_and_port, first_partition, name_prefix = sys.argv[1:5]
    if package == "iggy_py":
        asyncio.run(older(host_and_port, name_prefix))
    else:
        asyncio.run(apache(host_and_port, int(first_partition), name_prefix, package == "quic"))
