"""Streams of one account used from another that imports their API: at one server, and from another node of a cluster.

The same configuration and the same reads for nats-server, which proves them, and for ours. A cluster is two of a make; or
two nats-servers that have the streams, and ours, where the importing account is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.js.api import AckPolicy, ConsumerConfig
from support.configured_servers import KINDS, serve
from support.jetstream_clusters import await_jetstream

from headwater.testing.ports import free_port

pytestmark = pytest.mark.interop

PATIENCE = 10.0  # seconds for one step

ACCOUNTS = """
accounts {
    STREAMS {
        jetstream: enabled, users: [{user: streams, password: p}]
        exports: [
            {service: "$JS.API.>", response_type: stream}, {service: "$JS.ACK.>"}, {service: "$JS.FC.>"}
            {stream: "dlv.>"}, {service: "orders.>"}
        ]
    }
    APP {
        users: [{user: app, password: p}]
        imports: [
            {service: {account: STREAMS, subject: "$JS.API.>"}}, {service: {account: STREAMS, subject: "$JS.ACK.>"}}
            {service: {account: STREAMS, subject: "$JS.FC.>"}}, {service: {account: STREAMS, subject: "orders.>"}}
            {stream: {account: STREAMS, subject: "dlv.>"}}
        ]
    }
}
"""


class Place(NamedTuple):
    """`streams`: the port where the streams' account is used; `app`: where the importing one is."""

    streams: int
    app: int


@pytest.fixture(
    scope="module", params=[*[f"{kind}-{many}" for kind in KINDS for many in ("alone", "cluster")], "both-cluster"]
)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    kind, _, many = str(request.param).rpartition("-")
    directory: Path = tmp_path_factory.mktemp("accounts")
    with ExitStack() as stack:
        if many == "alone":
            config = f'listen: 127.0.0.1:-1\njetstream {{ store_dir: "{directory}" }}\n' + ACCOUNTS
            one = stack.enter_context(serve(kind, directory, config))
            yield Place(one.port, one.port)
            return
        makes = [kind, kind] if kind in KINDS else ["nats-server", "nats-server", "headwater"]
        routes = [free_port() for _ in makes]
        ports = []
        for number, (make, route) in enumerate(zip(makes, routes, strict=True)):
            name = f"n{number}"
            known = ", ".join(f'"nats-route://127.0.0.1:{port}"' for port in routes)
            config = f'listen: 127.0.0.1:-1\nserver_name: {name}\ncluster {{ name: hw, listen: "127.0.0.1:{route}", '
            config += f"routes: [{known}] }}\n" + ACCOUNTS
            if number == 0 or make == "nats-server":  # which wants JetStream at each of a cluster that small
                config += f'jetstream {{ store_dir: "{directory / name}" }}\n'
            ports.append(stack.enter_context(serve(make, directory / name, config)).port)
        await_jetstream([f"nats://streams:p@127.0.0.1:{port}" for port in ports])
        yield Place(ports[0], ports[-1])


Way = Callable[[Client, str], Awaitable[list[Msg]]]


async def fetch(app: Client, stream: str) -> list[Msg]:
    subscription = await app.jetstream(timeout=PATIENCE).pull_subscribe(f"{stream}.>", durable="d", stream=stream)
    return await subscription.fetch(3, timeout=PATIENCE)


async def push_to_an_imported_subject(app: Client, stream: str) -> list[Msg]:
    subscription = await app.subscribe(f"dlv.{stream}")
    config = ConsumerConfig(durable_name="p", deliver_subject=f"dlv.{stream}", ack_policy=AckPolicy.EXPLICIT)
    await app.jetstream(timeout=PATIENCE).add_consumer(stream, config)
    return [await subscription.next_msg(timeout=PATIENCE) for _ in range(3)]


async def push_to_a_group_on_an_imported_subject(app: Client, stream: str) -> list[Msg]:
    subscription = await app.subscribe(f"dlv.{stream}", queue="group")
    config = ConsumerConfig(durable_name="g", deliver_subject=f"dlv.{stream}", deliver_group="group")
    await app.jetstream(timeout=PATIENCE).add_consumer(stream, config)
    return [await subscription.next_msg(timeout=PATIENCE) for _ in range(3)]


@pytest.mark.parametrize("overheard", [False, True])
@pytest.mark.parametrize("way", [fetch, push_to_an_imported_subject, push_to_a_group_on_an_imported_subject])
def test_streams_of_another_account_are_read_and_acknowledged(place: Place, way: Way, overheard: bool) -> None:
    """`overheard`: other clients of both accounts listen to everything, which must change nothing."""

    async def scenario() -> None:
        async with (
            asyncio.timeout(30),
            await nats.connect(f"nats://streams:p@127.0.0.1:{place.streams}") as owner,
            await nats.connect(f"nats://app:p@127.0.0.1:{place.app}") as app,
            await nats.connect(f"nats://app:p@127.0.0.1:{place.streams}") as other,
        ):
            name = f"{way.__name__}-{overheard}"
            if overheard:
                await owner.subscribe(">")
                await other.subscribe(">")
                await other.flush()
            stream = owner.jetstream(timeout=PATIENCE)
            await stream.add_stream(name=name, subjects=[f"{name}.>"])
            for number in range(3):
                await stream.publish(f"{name}.{number}", b"%d" % number, headers={"N": str(number)})
            messages = await way(app, name)
            assert [(each.subject, each.data, each.headers) for each in messages] == [
                (f"{name}.{number}", b"%d" % number, {"N": str(number)}) for number in range(3)
            ]
            assert all(each.reply.startswith(f"$JS.ACK.{name}.") for each in messages)
            for each in messages:
                await each.ack_sync(timeout=PATIENCE)
            info = (await app.jetstream(timeout=PATIENCE).consumers_info(name))[0]
            assert (info.num_ack_pending, info.ack_floor and info.ack_floor.stream_seq) == (0, 3)
            assert info.delivered is not None and info.delivered.consumer_seq == 3, "nothing was asked for twice"

    asyncio.run(scenario())


def test_stream_is_made_changed_and_deleted_from_the_account_that_imports_the_api(place: Place) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(30), await nats.connect(f"nats://app:p@127.0.0.1:{place.app}") as app:
            stream = app.jetstream(timeout=PATIENCE)
            await stream.add_stream(name="made", subjects=["made.>"])
            changed = await stream.update_stream(name="made", subjects=["made.>", "more.>"])
            assert changed.config.subjects == ["made.>", "more.>"]
            assert "made" in [each.config.name for each in await stream.streams_info()]
            assert await stream.delete_stream("made")

    asyncio.run(scenario())


@pytest.mark.parametrize("overheard", [False, True])
def test_message_published_from_another_account_is_stored_once(place: Place, overheard: bool) -> None:
    async def scenario() -> None:
        async with (
            asyncio.timeout(30),
            await nats.connect(f"nats://streams:p@127.0.0.1:{place.streams}") as owner,
            await nats.connect(f"nats://app:p@127.0.0.1:{place.app}") as app,
            await nats.connect(f"nats://app:p@127.0.0.1:{place.streams}") as other,
        ):
            name = f"stored-{overheard}"
            stream = owner.jetstream(timeout=PATIENCE)
            await stream.add_stream(name=name, subjects=[f"orders.{overheard}.>"])
            received: asyncio.Queue[Msg] = asyncio.Queue()
            if overheard:
                await other.subscribe(f"orders.{overheard}.>", cb=received.put)
                await other.flush()
                while not received.qsize():  # until what is published at the other node arrives here
                    with suppress(NoRespondersError):
                        await app.request(f"orders.{overheard}.probe", timeout=PATIENCE)
                await stream.purge_stream(name)  # of what is stored: each probe was acknowledged
            for number in range(5):
                await app.jetstream(timeout=PATIENCE).publish(f"orders.{overheard}.{number}", b"%d" % number)
            info = await stream.stream_info(name)
            assert info.state.messages == 5

    asyncio.run(scenario())
