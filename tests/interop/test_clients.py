"""Other projects' clients on our broker: nats-py, natsrpy (async-nats in Rust) and the npm client for node.

Each publishes, subscribes, requests, serves and works in queue groups; what one publishes another gets, in every pairing.
The clients bring their own expectations of INFO, PONG, statuses and header blocks, which is the point.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from support.headwater_server import HeadwaterServer, start_headwater
from support.peers import CONNECTORS, NoResponders, Peer, connected

pytestmark = pytest.mark.interop

CLIENTS = list(CONNECTORS)
PAIRS = list(product(CLIENTS, CLIENTS))
SCENARIO_TIMEOUT = 60.0  # seconds; a scenario takes one, of which node's start is most


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadwaterServer]:
    directory: Path = tmp_path_factory.mktemp("broker")
    with start_headwater(directory) as server:
        yield server
        assert server.running, "the broker ended by itself"


Scenario = Callable[[Peer, Peer], Awaitable[None]]


def play(broker: HeadwaterServer, first: str, second: str, scenario: Scenario) -> None:
    """Runs a scenario between two connections, each of the named client."""

    async def run() -> None:
        async with asyncio.timeout(SCENARIO_TIMEOUT), connected(first, broker.url) as one:
            async with connected(second, broker.url) as other:
                await scenario(one, other)

    asyncio.run(run())


@pytest.mark.parametrize(("talker", "listener"), PAIRS)
def test_what_one_client_publishes_another_hears_in_order(broker: HeadwaterServer, talker: str, listener: str) -> None:
    async def scenario(speaker: Peer, hearer: Peer) -> None:
        ear = await hearer.subscribe("talk.*.>")
        payloads = [b"", b"hi", bytes(range(256)), b"\r\n+OK\r\n", b"x" * 100_000]
        for number, payload in enumerate(payloads):
            await speaker.publish(f"talk.{talker}.n{number}", payload, reply=f"back.{number}")
        await speaker.publish("talk", b"not for you")
        await speaker.flush()
        received = await ear.receive(len(payloads))
        assert [message.data for message in received] == payloads
        assert [message.subject for message in received] == [
            f"talk.{talker}.n{number}" for number in range(len(payloads))
        ]
        assert [message.reply for message in received] == [f"back.{number}" for number in range(len(payloads))]

    play(broker, talker, listener, scenario)


@pytest.mark.parametrize(("talker", "listener"), PAIRS)
def test_headers_arrive_with_name_value_and_payload(broker: HeadwaterServer, talker: str, listener: str) -> None:
    async def scenario(speaker: Peer, hearer: Peer) -> None:
        ear = await hearer.subscribe("headers")
        sent = [("Nats-Msg-Id", "1"), ("X-Colon", "a:b: c"), ("lower-case", "v")]
        await speaker.publish("headers", b"body", sent)
        await speaker.flush()
        (message,) = await ear.receive(1)
        assert message.data == b"body"
        assert sorted(message.headers) == sorted(sent)

    play(broker, talker, listener, scenario)


KEEPING = [name for name in CLIENTS if name != "nats-py"]


@pytest.mark.parametrize(("talker", "listener"), list(product(KEEPING, KEEPING)))
def test_repeated_header_values_all_arrive_in_order(broker: HeadwaterServer, talker: str, listener: str) -> None:
    async def scenario(speaker: Peer, hearer: Peer) -> None:
        assert speaker.keeps_values and hearer.keeps_values
        ear = await hearer.subscribe("repeated")
        await speaker.publish("repeated", b"", [("Via", "a"), ("Via", "b"), ("Via", "c"), ("Other", "z")])
        await speaker.flush()
        (message,) = await ear.receive(1)
        assert [value for name, value in message.headers if name == "Via"] == ["a", "b", "c"]
        assert ("Other", "z") in message.headers

    play(broker, talker, listener, scenario)


@pytest.mark.parametrize(("caller", "service"), PAIRS)
def test_a_request_of_one_client_is_answered_by_another(broker: HeadwaterServer, caller: str, service: str) -> None:
    async def scenario(requester: Peer, answering: Peer) -> None:
        await answering.serve("svc.echo", tag="echo")
        for number in range(20):
            answer = await requester.request("svc.echo", b"%d" % number, [("Trace", f"t{number}")])
            assert answer.data == b"echo:%d" % number
            assert answer.headers == [("Trace", f"t{number}")]
        answers = await asyncio.gather(*(requester.request("svc.echo", b"%d" % number) for number in range(20)))
        assert [answer.data for answer in answers] == [b"echo:%d" % number for number in range(20)]

    play(broker, caller, service, scenario)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_request_that_nobody_serves_fails_at_once(broker: HeadwaterServer, client: str) -> None:
    async def scenario(requester: Peer, _: Peer) -> None:
        with pytest.raises(NoResponders):
            await requester.request("svc.nobody", b"anyone?")

    play(broker, client, client, scenario)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_queue_group_shares_the_messages_between_clients(broker: HeadwaterServer, first: str, second: str) -> None:
    async def scenario(one: Peer, other: Peer) -> None:
        await one.serve("work.*", tag="one", queue="crew")
        await other.serve("work.1", tag="other", queue="crew")
        answers = await one.subscribe("work-done")
        count = 60
        for number in range(count):
            await other.publish("work.1", b"%d" % number, reply="work-done")
        await other.flush()
        received = [message.data.split(b":") for message in await answers.receive(count)]
        assert sorted(int(number) for _, number in received) == list(range(count)), "each message exactly once"
        assert {tag for tag, _ in received} == {b"one", b"other"}, "both members work"
        await other.flush()
        await one.publish("work-done", b"last")
        assert [message.data for message in await answers.receive(1)] == [b"last"], "and nothing more"

    play(broker, first, second, scenario)


@pytest.mark.parametrize("client", CLIENTS)
def test_auto_unsubscribe_stops_after_so_many_messages(broker: HeadwaterServer, client: str) -> None:
    async def scenario(one: Peer, other: Peer) -> None:
        limited = await one.subscribe("limited")
        witness = await one.subscribe("limited")
        await limited.stop_after(2)
        await one.flush()
        for number in range(4):
            await other.publish("limited", b"%d" % number)
        await other.flush()
        assert [message.data for message in await witness.receive(4)] == [b"0", b"1", b"2", b"3"]
        assert [message.data for message in await limited.receive(2)] == [b"0", b"1"]

    # Under load async-nats' subscription brings nothing now and then, with nats-server too (in 5 of 116 conversations).
    for _ in range(3 if client == "natsrpy" else 1):
        try:
            play(broker, client, client, scenario)
            return
        except TimeoutError as error:
            failure = error
    raise failure


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_leaves_is_forgotten(broker: HeadwaterServer, client: str) -> None:
    async def run() -> None:
        async with asyncio.timeout(SCENARIO_TIMEOUT), connected("nats-py", broker.url) as caller:
            async with connected(client, broker.url) as service:
                await service.serve("svc.brief", tag="brief")
                assert (await caller.request("svc.brief", b"1")).data == b"brief:1"
            with pytest.raises(NoResponders):
                while True:  # the broker may read the request before the end of the other connection: no answer comes
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(1):
                            await caller.request("svc.brief", b"2")

    asyncio.run(run())
