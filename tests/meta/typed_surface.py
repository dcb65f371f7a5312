"""What a type checker says of programs that use Headwater; `test_typed_surface.py` reads it, and nothing runs it.

Each line with `type: ignore` has one misspelt name, or a value of the wrong type, and is an error of that code without the
comment. All other lines are uses as the documentation has them, and clean.
"""

from pathlib import Path

import headwater
from headwater import Broker, Headers, Message, TypedHeaders
from headwater.client import sync
from headwater.client.client import Client
from headwater.client.jetstream_types import ConsumerConfig, ExternalStream, SourceConsumer, StreamConfig, StreamSource
from headwater.client.key_value import BucketConfig
from headwater.client.object_store import StoreConfig
from headwater.client.options import ClientOptions
from headwater.cloudevents import CloudEvent, to_binary
from headwater.iggy.face import IggyOptions
from headwater.iggy.service_options import ServiceOptions
from headwater.iggy_client.client import connect as connect_iggy
from headwater.iggy_wire.commands import Message as IggyMessage
from headwater.net.listener_options import TlsOptions
from headwater.options.access import AccountOptions, UserOptions
from headwater.options.broker import BrokerOptions
from headwater.options.cluster import ClusterOptions
from headwater.testing import RunningBroker
from headwater.testing.fixtures import BrokerFactory


async def core(client: Client) -> None:
    await client.publish("orders.eu", b"42", headers={"Trace": ["a", "b"]})
    await client.publsih("orders.eu", b"42")  # type: ignore[attr-defined]
    await client.publish("orders.eu", b"42", header={"Trace": "a"})  # type: ignore[call-arg]
    await client.publish("orders.eu", 42)  # type: ignore[arg-type]
    await client.publish(b"orders.eu", b"42")  # type: ignore[arg-type]
    subscription = await client.subscribe("orders.*", queue="workers", max_messages=1)
    await client.subscribe("orders.*", qeue="workers")  # type: ignore[call-arg]
    await client.subscribe("orders.*", when_full="drop")  # type: ignore[arg-type]
    async for message in subscription:
        print(message.subject, message.data.decode(), message.headers.get_all("Trace"), message.reply)
        print(message.payload)  # type: ignore[attr-defined]
        print(message.headers.getall("Trace"))  # type: ignore[attr-defined]
        await client.publish(message.reply, message.data)
    print(subscription.pending, subscription.dropped, (await subscription.next(timeout=1)).data)
    print(subscription.pendng)  # type: ignore[attr-defined]
    answer = await client.request("greet", b"you", timeout=5)
    print(answer.data, answer.status)
    await client.request("greet", b"you", timeout="5")  # type: ignore[arg-type]
    await client.requests("greet")  # type: ignore[attr-defined]
    print(client.is_connected, client.connected_url, client.max_payload)
    print(client.conected_url)  # type: ignore[attr-defined]
    await client.flush()
    await client.dain()  # type: ignore[attr-defined]


async def connecting() -> None:
    async with await headwater.connect("nats://127.0.0.1:4222", name="me", reconnect_attempts=3) as client:
        await client.flush()
    await headwater.connect(user_name="me")  # type: ignore[call-arg]
    await headwater.connect(ping_interval="2m")  # type: ignore[arg-type]
    await headwater.conect()  # type: ignore[attr-defined]
    print(headwater.nosuch)  # type: ignore[attr-defined]
    print(headwater.__compiled__, headwater.__version__)
    print(ClientOptions(servers=["a"], tls_ca="ca.pem"))
    print(ClientOptions(server=["a"]))  # type: ignore[call-arg]


async def streams(client: Client) -> None:
    jetstream = client.jetstream(timeout=5)
    await jetstream.create_stream(StreamConfig(name="ORDERS", subjects=["orders.>"], retention="workqueue"))
    await jetstream.create_straem(StreamConfig(name="ORDERS"))  # type: ignore[attr-defined]
    await jetstream.create_stream(StreamConfig(nam="ORDERS"))  # type: ignore[call-arg]
    await jetstream.create_stream(StreamConfig(name="ORDERS", retention="work"))  # type: ignore[arg-type]
    await jetstream.create_consumer("ORDERS", ConsumerConfig(durable_name="d", ack_policy="explicit"))
    await jetstream.create_consumer("ORDERS", ConsumerConfig(durable="d"))  # type: ignore[call-arg]
    acknowledged = await jetstream.publish("orders.eu", b"1", headers={"K": "v"})
    print(acknowledged.seq + 1)
    print(acknowledged.sequence)  # type: ignore[attr-defined]
    for message in await jetstream.pull_consumer("ORDERS", "d").fetch(10, timeout=5):
        print(message.metadata.stream_seq, message.data)
        await message.ack(confirm=5)
        await message.akc()  # type: ignore[attr-defined]
    async with jetstream.pull_consumer("ORDERS", "d").consume() as messages:
        async for message in messages:
            await message.ack()
    hub = ExternalStream(api="$JS.hub.API")
    through = SourceConsumer(name="COPY", deliver_subject="copy")
    await jetstream.create_stream(
        StreamConfig(name="M", mirror=StreamSource(name="ORDERS", external=hub, consumer=through))
    )
    await jetstream.create_stream(StreamConfig(name="M", mirror="ORDERS"))  # type: ignore[arg-type]
    await jetstream.create_stream(StreamConfig(name="S", sources=[StreamSource(name="ORDERS", opt_start_seq=7)]))
    StreamSource(name="ORDERS", start_seq=7)  # type: ignore[call-arg]
    reported = (await jetstream.stream_info("M")).mirror
    print(reported.lag if reported else 0)
    member = jetstream.pull_consumer("ORDERS", "d", group="A")
    print(len(await member.fetch(10, min_pending=100, min_ack_pending=10, priority=1)))
    await member.fetch(10, min_pendin=100)  # type: ignore[call-arg]
    await member.fetch(10, priority="high")  # type: ignore[arg-type]
    await jetstream.unpin_consumer("ORDERS", "d", "A")
    async with jetstream.atomic_batch() as atomic:
        await atomic.publish("orders.eu", b"1", expect_last_sequence=7)
        await atomic.publish("orders.eu", b"1", expect_last_seq=7)  # type: ignore[call-arg]
    print(atomic.ack.count if atomic.ack else 0)
    async with jetstream.fast_publisher(gaps_allowed=True) as fast:
        await fast.publish("orders.eu", b"1", msg_id="1")
        await fast.publish("orders.eu", b"1", ttl="1s")  # type: ignore[call-arg]
    print(fast.ack.count if fast.ack else fast.lost + fast.refused)
    counters = jetstream.counters("VISITS")
    print(await counters.add("visits.home", 10**30) + 1, (await counters.get("visits.home") or 0) + 1)
    await counters.add("visits.home", "1")  # type: ignore[arg-type]
    await counters.increment("visits.home")  # type: ignore[attr-defined]
    values = await jetstream.create_key_value(BucketConfig(bucket="b"))
    await values.put("k", b"v")
    print((await values.get("k")).value)
    await values.set("k", b"v")  # type: ignore[attr-defined]
    store = await jetstream.create_object_store(StoreConfig(bucket="o"))
    print((await store.put("name", b"data")).chunks)
    await store.putt("name", b"data")  # type: ignore[attr-defined]


def blocking() -> None:
    with sync.connect("nats://127.0.0.1:4222") as client:
        client.publish("greet", b"hello")
        client.publsh("greet", b"hello")  # type: ignore[attr-defined]
        jetstream = client.jetstream()
        jetstream.create_stream(StreamConfig(name="ORDERS", subjects=["orders.>"]))
        jetstream.create_straem(StreamConfig(name="ORDERS"))  # type: ignore[attr-defined]
        jetstream.create_stream(name="ORDERS")  # type: ignore[call-arg]
        print(jetstream.publish("orders.eu", b"1").seq)
        for message in jetstream.pull_consumer("ORDERS", "d").fetch(10):
            message.ack(confirm=5)
            message.akc()  # type: ignore[attr-defined]
        with jetstream.publisher(window=10) as publisher:
            publisher.publish("orders.eu", b"1")
        with jetstream.atomic_batch() as atomic:
            atomic.publish("orders.eu", b"1")
            atomic.publsih("orders.eu", b"1")  # type: ignore[attr-defined]
        print(jetstream.counters("VISITS").add("visits.home", 2) + 1)
        jetstream.counters("VISITS").add("visits.home", 0.5)  # type: ignore[arg-type]
        values = jetstream.create_key_value(BucketConfig(bucket="b"))
        values.put("k", b"v")
        print(values.get("k").value.decode(), values.keys()[0].upper())
        values.gte("k")  # type: ignore[attr-defined]
        for entry in values.watch():
            print(entry.key)
            print(entry.kye)  # type: ignore[attr-defined]


async def brokers(broker_factory: BrokerFactory) -> None:
    async with Broker(jetstream=True, store_dir="data", sync="interval", max_payload=1 << 20) as broker:
        print(broker.url, broker.port)
        print(broker.ulr)  # type: ignore[attr-defined]
    Broker(jetsream=True)  # type: ignore[call-arg]
    Broker(sync="sometimes")  # type: ignore[arg-type]
    Broker(port="4222")  # type: ignore[arg-type]
    account = AccountOptions(name="A", users=(UserOptions(username="u", password="p"),))
    Broker(accounts=(account,), cluster=ClusterOptions(port=0, name="c"))
    AccountOptions(name="A", user=())  # type: ignore[call-arg]
    TlsOptions(cert_file=Path("c"), key_fil=Path("k"))  # type: ignore[call-arg]
    Broker(options=BrokerOptions(server_name="n", tls=TlsOptions(cert_file=Path("c"), key_file=Path("k"))))
    BrokerOptions(servername="n")  # type: ignore[call-arg]
    with RunningBroker(jetstream=True, store_dir="data") as running:
        running.restart()
        running.restrat()  # type: ignore[attr-defined]
    RunningBroker(jetsream=True)  # type: ignore[call-arg]
    broker_factory(max_payload=100).stop()
    broker_factory(maxpayload=100)  # type: ignore[call-arg]


async def iggy() -> None:
    options = IggyOptions(tcp=("127.0.0.1", 0), service=ServiceOptions(sync="never"))
    async with Broker(jetstream=True, store_dir="data", iggy=options) as broker:
        async with await connect_iggy(f"iggy://iggy:iggy@127.0.0.1:{broker.iggy.tcp_port}") as client:
            await client.create_stream("orders")
            await client.create_topic("orders", "eu", partitions=1)
            await client.send("orders", "eu", [IggyMessage(b"hello", TypedHeaders({"key-2": True}))])
            (message,) = await client.poll("orders", "eu", partition=0)
            print(message.payload, message.offset)
            print(message.ofset)  # type: ignore[attr-defined]
            await client.sned("orders", "eu", [])  # type: ignore[attr-defined]
            await client.create_topic("orders", "eu", partition=1)  # type: ignore[call-arg]
        print(broker.iggy.tcpport)  # type: ignore[attr-defined]
    IggyOptions(tcp="127.0.0.1:8090")  # type: ignore[arg-type]
    IggyOptions(tpc=("127.0.0.1", 0))  # type: ignore[call-arg]
    Broker(iggy=ServiceOptions())  # type: ignore[arg-type]


def values(message: Message) -> None:
    headers = Headers([("A", "1"), ("A", "2")])
    print(headers["A"].upper(), headers.get_all("A")[0].upper(), headers.first("B"))
    headers["A"] = 1  # type: ignore[assignment]
    print(headers.frist("A"))  # type: ignore[attr-defined]
    print(message.subjet)  # type: ignore[attr-defined]
    event = CloudEvent(id="1", source="/s", type="t", data={"a": 1}, subject="x")
    print(to_binary(event).headers, event.source)
    print(event.sorce)  # type: ignore[attr-defined]
    CloudEvent(id="1", source="/s")  # type: ignore[call-arg]
