"""What clients stumbled over once, held against the real nats-server: what a push consumer receives at its end, republishing
into a bucket, how many consumers a stream may have, pulls that acks hold back, roll-ups that name many subjects."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from support.headwater_server import HeadwaterServer, start_headwater
from support.jetstream_pair import API, ask, compare, written
from support.nats_server import NatsServer, start_nats_server

from headwater.client.blocking import BlockingClient
from headwater.client.client import Client, connect
from headwater.client.options import ClientOptions

pytestmark = pytest.mark.interop

SECOND = 1_000_000_000
KINDS = ["nats-server", "headwater"]
BOUND = 20.0  # seconds


def start(kind: str, directory: Path) -> NatsServer | HeadwaterServer:
    if kind == "nats-server":
        return start_nats_server(directory)
    return start_headwater(directory, "-js", "-sd", str(directory / "js"))


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The real server's, and ours."""
    directory = tmp_path_factory.mktemp("faults")
    with start(KINDS[0], directory / "real") as real, start(KINDS[1], directory / "ours") as ours:
        yield [real.url, ours.url]


@pytest.fixture
def clients(urls: list[str]) -> Iterator[list[BlockingClient]]:
    """A client of each server, the real one first."""
    made = [BlockingClient.connect(ClientOptions(servers=[url])) for url in urls]
    yield made
    for client in made:
        client.close()


async def request(client: Client, subject: str, body: object = None) -> Any:
    payload = b"" if body is None else json.dumps(body).encode()
    return json.loads((await client.request(API + subject, payload, timeout=BOUND)).data)


async def push_consumer(client: Client, inbox: str) -> None:
    await request(client, "STREAM.CREATE.S", {"name": "S", "subjects": ["s"]})
    config = {"name": "c", "deliver_subject": inbox, "idle_heartbeat": SECOND // 10, "ack_policy": "none"}
    await request(client, "CONSUMER.CREATE.S.c", {"stream_name": "S", "config": config})


@pytest.mark.parametrize("kind", KINDS)
def test_a_push_consumer_that_is_deleted_says_nothing_on_its_deliver_subject(kind: str, tmp_path: Path) -> None:
    async def main(url: str) -> None:
        async with await connect(url) as client:
            subscription = await client.subscribe("to.push")
            await push_consumer(client, "to.push")
            first = await asyncio.wait_for(subscription.next(), BOUND)
            assert first.status is not None and first.status.code == 100
            assert (await request(client, "CONSUMER.DELETE.S.c"))["success"]
            await client.publish("to.push", b"what comes last")
            received = await asyncio.wait_for(subscription.next(), BOUND)
            while received.status is not None and received.status.code == 100:
                received = await asyncio.wait_for(subscription.next(), BOUND)
            assert received.data == b"what comes last"

    with start(kind, tmp_path) as server:
        asyncio.run(main(server.url))


@pytest.mark.parametrize("kind", KINDS)
def test_a_push_consumer_hears_nothing_of_the_end_of_its_server(kind: str, tmp_path: Path) -> None:
    async def main(server: NatsServer | HeadwaterServer) -> list[tuple[dict[str, str] | None, bytes]]:
        received: list[tuple[dict[str, str] | None, bytes]] = []
        gone = asyncio.Event()

        async def note(message: Any) -> None:
            received.append((message.headers, message.data))

        async def disconnected() -> None:
            gone.set()

        client = await nats.connect(server.url, allow_reconnect=False, disconnected_cb=disconnected)
        stream = client.jetstream()
        await stream.add_stream(name="S", subjects=["s"])
        await stream.subscribe("s", cb=note, idle_heartbeat=0.2, manual_ack=True)
        await stream.publish("s", b"one")
        await asyncio.to_thread(server.stop)
        await asyncio.wait_for(gone.wait(), BOUND)
        await client.close()
        return received

    with start(kind, tmp_path) as server:
        assert asyncio.run(main(server)) == [(None, b"one")]


@pytest.mark.parametrize(
    ("subjects", "source", "destination"),
    [
        (["$KV.a.>"], ">", "$KV.>"),
        (["a.*"], ">", "$KV.b.>"),
        (["a.*"], "a.*", "$KV.b.{{wildcard(1)}}"),
        (["a.*"], "a.*", "$KV.b.$1"),
        (["a.*"], "a.*", "a.{{wildcard(1)}}"),
        (["a.*"], "a.*", "a.$1"),
        (["a.*"], "a.*", "$x.$1"),
        (["a.*"], "a.*", "$KV.b.x$1"),
        (["a.*"], "a.*", "x.$2"),
        (["a.*"], "a.*", "x.{{partition(3,1)}}"),
        (["a.*"], "a.*", "x.{{split(1,-)}}.{{left(1,2)}}"),
        (["a.*"], "a.*", "x.{{nope(1)}}"),
        (["a.*"], ">", "b.*"),
    ],
)
def test_a_destination_of_republishing_is_judged_alike(
    clients: list[BlockingClient], subjects: list[str], source: str, destination: str
) -> None:
    stream = {"name": "R", "subjects": subjects, "republish": {"src": source, "dest": destination}}
    compare(clients, [(API + "STREAM.CREATE.R", stream), (API + "STREAM.DELETE.R", None)])


def test_what_is_republished_into_a_bucket_is_kept_there(clients: list[BlockingClient]) -> None:
    republish = {"src": "o.*", "dest": "$KV.copy.{{wildcard(1)}}.{{split(1,-)}}"}
    origin = {"name": "ORIGIN", "subjects": ["o.*"], "republish": republish}
    compare(
        clients,
        [
            (API + "STREAM.CREATE.KV_copy", {"name": "KV_copy", "subjects": ["$KV.copy.>"], "max_msgs_per_subject": 1}),
            (API + "STREAM.CREATE.ORIGIN", origin),
            ("o.a-b", b"1"),
            ("o.a-b", b"2"),
            ("o.c", b"3"),
        ],
    )
    for client in clients:  # a message of the origin is stored in the copy a moment after it was acknowledged
        for _ in range(200):
            state = ask(client, API + "STREAM.INFO.KV_copy", {"subjects_filter": ">"})["state"]
            if state["last_seq"] == 3:
                break
        assert state["subjects"] == {"$KV.copy.a-b.a.b": 1, "$KV.copy.c.c": 1}


def test_answers_to_publishes_come_in_the_order_of_these(urls: list[str]) -> None:
    """Refusals, duplicates, and messages of batches among them, to one reply subject."""
    kinds = [
        {},
        {"Nats-Expected-Last-Sequence": "777"},
        {"Nats-Msg-Id": "same"},
        {},
        {"Nats-Batch-Id": "kept", "Nats-Batch-Sequence": "1"},
        {"Nats-Batch-Id": "unknown", "Nats-Batch-Sequence": "2"},
    ]

    async def answers(url: str) -> list[int]:
        async with await connect(url) as client:
            await request(client, "STREAM.CREATE.ORDER", {"name": "ORDER", "subjects": ["order"], "allow_atomic": True})
            inbox = client.new_inbox()
            replies = await client.subscribe(inbox)
            for number in range(42):
                headers = dict(kinds[number % 6])
                if headers.get("Nats-Batch-Id") == "kept":
                    headers["Nats-Batch-Id"] = f"kept-{number}"
                await client.publish("order", b"", headers=headers or None, reply=inbox)
            found: list[int] = []
            async with asyncio.timeout(BOUND):
                while len(found) < 42:
                    answer = json.loads((await replies.next()).data or b'{"seq": 0}')
                    found.append(answer["error"]["err_code"] if "error" in answer else answer["seq"])
            return found

    real, ours = [asyncio.run(answers(url)) for url in urls]
    assert real == ours
    assert real[:11] == [1, 10071, 2, 3, 0, 10176, 4, 10071, 2, 5, 0]


def test_a_stream_has_a_thousand_consumers_where_nobody_says_how_many(clients: list[BlockingClient]) -> None:
    for client in clients:
        for name, most in (("FULL", {}), ("MORE", {"max_consumers": 1001})):
            body = {"name": name, "subjects": [name], "storage": "memory", **most}
            assert "error" not in ask(client, f"{API}STREAM.CREATE.{name}", body)
            for number in range(1000):
                config = {"name": f"c{number}", "mem_storage": True, "inactive_threshold": 600 * SECOND}
                answer = ask(client, f"{API}CONSUMER.CREATE.{name}.c{number}", {"stream_name": name, "config": config})
                assert "error" not in answer
    one_more = {"name": "more", "mem_storage": True}
    real, ours = compare(
        clients,
        [(f"{API}CONSUMER.CREATE.{name}.more", {"stream_name": name, "config": one_more}) for name in ("FULL", "MORE")],
    )
    assert real["error"]["err_code"] == 10026
    assert "error" not in ours
    compare(clients, [(f"{API}STREAM.DELETE.{name}", None) for name in ("FULL", "MORE")])


@pytest.mark.parametrize("expires", [0, 30 * SECOND])
@pytest.mark.parametrize("already", [0, 1])
def test_a_pull_that_does_not_wait_goes_on_when_acks_make_room(urls: list[str], expires: int, already: int) -> None:
    async def main(url: str) -> object:
        async with await connect(url) as client:
            await request(client, "STREAM.DELETE.PENDING")
            await request(client, "STREAM.CREATE.PENDING", {"name": "PENDING", "subjects": ["p"]})
            config = {"name": "c", "ack_policy": "explicit", "max_ack_pending": 2}
            await request(client, "CONSUMER.CREATE.PENDING.c", {"stream_name": "PENDING", "config": config})
            for number in range(5):
                await client.request("p", b"%d" % number)
            subscription = await client.subscribe("in")
            received: list[Any] = []

            async def pull(batch: int) -> None:
                wanted = {"batch": batch, "no_wait": True, **({"expires": expires} if expires else {})}
                await client.publish(f"{API}CONSUMER.MSG.NEXT.PENDING.c", json.dumps(wanted).encode(), reply="in")

            async def take(count: int) -> None:
                received.extend([await asyncio.wait_for(subscription.next(), BOUND) for _ in range(count)])

            if already:
                await pull(1)
                await take(1)
            await pull(5)
            await take(2 - already)
            waiting = (await request(client, "CONSUMER.INFO.PENDING.c"))["num_waiting"]
            while sum(1 for message in received if not message.status) < 5:
                await client.request(received[-1].reply, b"+ACK")
                await take(1)
            if not already:
                await client.publish("in", b"nothing else came")
                await take(1)
            return waiting, [[subject, data] for subject, _, _, data in written(received)], [m.status for m in received]

    real, ours = (asyncio.run(main(url)) for url in urls)
    assert ours == real


def test_a_pull_that_does_not_wait_for_acks_is_over_when_its_heartbeat_is_due(urls: list[str]) -> None:
    async def main(url: str) -> object:
        async with await connect(url) as client:
            await request(client, "STREAM.CREATE.BEATS", {"name": "BEATS", "subjects": ["beats"]})
            config = {"name": "c", "ack_policy": "explicit", "max_ack_pending": 2}
            await request(client, "CONSUMER.CREATE.BEATS.c", {"stream_name": "BEATS", "config": config})
            for number in range(3):
                await client.request("beats", b"%d" % number)
            subscription = await client.subscribe("in.beats")
            wanted = {"batch": 5, "no_wait": True, "expires": 30 * SECOND, "idle_heartbeat": SECOND // 5}
            await client.publish(API + "CONSUMER.MSG.NEXT.BEATS.c", json.dumps(wanted).encode(), reply="in.beats")
            return written([await asyncio.wait_for(subscription.next(), BOUND) for _ in range(3)])

    real, ours = (asyncio.run(main(url)) for url in urls)
    assert ours == real


def test_a_pull_that_does_not_wait_is_over_at_once_during_a_pause(urls: list[str]) -> None:
    async def main(url: str) -> object:
        async with await connect(url) as client:
            await request(client, "STREAM.CREATE.RESTS", {"name": "RESTS", "subjects": ["rests"]})
            await request(client, "CONSUMER.CREATE.RESTS.c", {"stream_name": "RESTS", "config": {"name": "c"}})
            await client.request("rests", b"held back")
            await request(client, "CONSUMER.PAUSE.RESTS.c", {"pause_until": "2100-01-01T00:00:00Z"})
            subscription = await client.subscribe("in.rests")
            await client.publish(API + "CONSUMER.MSG.NEXT.RESTS.c", b'{"batch":1,"no_wait":true}', reply="in.rests")
            return written([await asyncio.wait_for(subscription.next(), BOUND)])

    real, ours = (asyncio.run(main(url)) for url in urls)
    assert ours == real


def test_what_the_api_level_promises_is_done(clients: list[BlockingClient], urls: list[str]) -> None:
    """nats-server's is 5; ours is that of what it can honour, and a request that needs more is refused."""
    ours = clients[1]
    level = ask(ours, API + "INFO", None)["api"]["level"]
    answer = ask(ours, API + "STREAM.CREATE.LEVEL", {"name": "LEVEL", "subjects": ["level"], "allow_msg_ttl": True})
    assert answer["config"]["metadata"]["_nats.level"] == str(level) == "5"
    assert answer["config"]["metadata"]["_nats.req.level"] == "1"
    body = {"name": "HIGHER", "subjects": ["higher"], "allow_msg_schedules": True}
    for client in clients:
        assert ask(client, API + "STREAM.CREATE.HIGHER", body)["config"]["metadata"]["_nats.req.level"] == "2"
        assert ask(client, API + "STREAM.DELETE.HIGHER", None)["success"]

    async def required(url: str) -> list[bool]:
        async with await connect(url) as client:
            answers = [
                (await client.request(API + "INFO", b"", headers={"Nats-Required-Api-Level": text})).data
                for text in ("0", "1", "5", "6", "x")
            ]
            return [b"10185" in answer for answer in answers]

    assert asyncio.run(required(urls[1])) == [False, False, False, True, True]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_roll_up_whose_subject_has_wildcards_purges_what_matches(kind: str, restart: bool, tmp_path: Path) -> None:
    async def main(url: str) -> None:
        client = await nats.connect(url)
        store = await client.jetstream().create_key_value(bucket="b", history=5)
        for number in range(100):
            await store.put(f"hello.{number}", b"x")
        await store.put("hello.1", b"y")
        await store.put("other", b"stays")
        await store.put("hello.1.deeper", b"stays")
        await store.purge("hello.*")
        await client.close()

    async def look(url: str) -> tuple[int, dict[str, int]]:
        async with await connect(url) as client:
            state = (await request(client, "STREAM.INFO.KV_b", {"subjects_filter": ">"}))["state"]
            return state["messages"], state["subjects"]

    with start(kind, tmp_path) as server:
        asyncio.run(main(server.url))
        found = None if restart else asyncio.run(look(server.url))
        if restart:
            server.kill()
    if restart:
        with start(kind, tmp_path) as server:
            found = asyncio.run(look(server.url))
    assert found == (3, {"$KV.b.hello.*": 1, "$KV.b.other": 1, "$KV.b.hello.1.deeper": 1})


@pytest.mark.parametrize("kind", KINDS)
def test_the_keys_of_a_bucket_whose_keys_live_short_are_told(kind: str, tmp_path: Path) -> None:
    """What was counted when a watch began and is over before it is delivered must not leave the client waiting."""

    async def main(url: str) -> None:
        client = await nats.connect(url)
        stream = client.jetstream()
        store = await stream.create_key_value(bucket="short", ttl=0.1)
        for number in range(10):
            for key in range(4):
                await stream.publish(f"$KV.short.{key}", b"x")
            await asyncio.sleep(0.05 + number * 0.005)  # so old that they end while they are requested
            with contextlib.suppress(nats.js.errors.NoKeysError):
                await asyncio.wait_for(store.keys(), BOUND)
        await client.close()

    with start(kind, tmp_path) as server:
        asyncio.run(main(server.url))
