"""The client on the real nats-server and on our broker, which must not differ for it."""

import asyncio
import os
import secrets
import signal
from collections import Counter
from pathlib import Path

import pytest
from support.both_servers import Serve
from support.headwater_server import start_headwater
from support.nats_server import start_nats_server
from support.scripted_server import finish

import headwater
from headwater.client.client import Client
from headwater.client.events import AttemptFailed, Disconnected, LameDuck, Reconnected
from headwater.client.subscription import Subscription
from headwater.errors import NoResponders, PayloadTooLarge, RequestTimeout


def own_subject() -> str:
    """A subject that no other test uses: the real server is shared."""
    return f"test.{secrets.token_hex(4)}"


def test_publish_and_iterate_with_headers_of_several_values(serve: Serve) -> None:
    async def main() -> None:
        subject = own_subject()
        async with serve() as url, await headwater.connect(url) as client:
            subscription = await client.subscribe(f"{subject}.*", max_messages=3)
            await client.publish(f"{subject}.a", b"1", headers={"K": ["1", "2"], "k": "3"}, reply="r.x")
            await client.publish(f"{subject}.b", b"")
            await client.publish(f"{subject}.\udcff", bytes(100_000))
            first, second, third = [message async for message in subscription]
            assert (first.subject, first.data, first.reply) == (f"{subject}.a", b"1", "r.x")
            assert list(first.headers.multi_items()) == [("K", "1"), ("K", "2"), ("k", "3")]
            assert (second.data, second.header_block) == (b"", b"")
            assert third.subject == f"{subject}.\udcff"
            assert len(third.data) == 100_000

    finish(main())


def test_twenty_thousand_messages_come_whole_and_in_order(serve: Serve) -> None:
    async def main() -> None:
        subject = own_subject()
        count = 20_000
        async with serve() as url, await headwater.connect(url) as one, await headwater.connect(url) as other:
            subscription = await other.subscribe(subject, max_messages=count)
            await other.flush()

            async def publish() -> None:
                for number in range(count):
                    await one.publish(subject, b"%d" % number + bytes(number % 300))

            publishing = asyncio.create_task(publish())
            number = 0
            async for batch in subscription.batches():
                for message in batch:
                    assert message.data == b"%d" % number + bytes(number % 300)
                    number += 1
            await publishing
            assert (number, subscription.received, subscription.dropped) == (count, count, 0)

    finish(main(), 60)


WAYS = ["iterate", "next", "batches", "record_batches", "callback", "coroutine", "queue"]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_read_gives_the_same_messages_in_order(serve: Serve, way: str) -> None:
    wanted = [(b"%d" % number, b"NATS/1.0\r\nN: %d\r\n\r\n" % number if number % 3 else b"") for number in range(300)]

    async def read(client: Client, subject: str, read: list[tuple[bytes, bytes]]) -> Subscription:
        def take(message: headwater.Message) -> None:
            read.append((message.data, message.header_block))

        async def take_later(message: headwater.Message) -> None:
            await asyncio.sleep(0)
            take(message)

        callback = {"callback": take, "coroutine": take_later, "queue": take}.get(way)
        group = "workers" if way == "queue" else ""
        return await client.subscribe(subject, queue=group, callback=callback, max_messages=len(wanted))

    async def main() -> None:
        subject, came = own_subject(), list[tuple[bytes, bytes]]()
        async with serve() as url, await headwater.connect(url) as client, await headwater.connect(url) as other:
            subscription = await read(client, subject, came)
            await client.flush()
            for data, block in wanted:
                await other.publish(subject, data, headers={"N": data.decode()} if block else None)
            await other.flush()
            if subscription.task is not None:
                await subscription.task
            elif way == "iterate":
                came += [(message.data, message.header_block) async for message in subscription]
            elif way == "next":
                came += [((message := await subscription.next(5)).data, message.header_block) for _ in wanted]
            elif way == "batches":
                async for batch in subscription.batches(7):
                    came += [(message.data, message.header_block) for message in batch]
            else:
                async for rows in subscription.record_batches(50):
                    columns = (rows.column("data").to_pylist(), rows.column("header_block").to_pylist())
                    came += [(data, block or b"") for data, block in zip(*columns, strict=True)]
            assert came == wanted
            assert (subscription.received, subscription.dropped, subscription.pending) == (len(wanted), 0, 0)

    finish(main(), 30)


@pytest.mark.parametrize("kind", [pytest.param("nats-server", marks=pytest.mark.interop), "headwater"])
def test_a_server_that_is_about_to_go_says_so_and_another_takes_over(kind: str, tmp_path: Path) -> None:
    async def main() -> None:
        start = start_nats_server if kind == "nats-server" else start_headwater
        (tmp_path / "duck.conf").write_text('lame_duck_duration: "30s"\nlame_duck_grace_period: "1ms"\n')
        with start(tmp_path / "1", "-c", str(tmp_path / "duck.conf")) as going, start(tmp_path / "2") as staying:
            async with await headwater.connect(
                [going.url, staying.url], error_callback=lambda _: None, reconnect_wait=0.0, reconnect_jitter=0.0
            ) as client:
                events = client.events()
                os.kill(going.pid, signal.SIGUSR2)
                assert isinstance(await anext(events), LameDuck)
                assert client.is_connected
                going.kill()
                async with asyncio.timeout(20):
                    while not isinstance(event := await anext(events), Reconnected):
                        assert isinstance(event, Disconnected | AttemptFailed | LameDuck)
                assert client.server == staying.url
                await client.flush()

    finish(main(), 40)


def test_a_queue_group_shares_and_a_plain_subscription_has_all(serve: Serve) -> None:
    async def main() -> None:
        subject = own_subject()
        async with serve() as url, await headwater.connect(url) as client:
            members = [await client.subscribe(subject, queue="q") for _ in range(3)]
            plain = await client.subscribe(subject)
            for _ in range(300):
                client.publish(subject)
            await client.flush()
            assert plain.pending == 300
            assert sum(member.pending for member in members) == 300
            assert all(member.pending > 30 for member in members)

    finish(main())


def test_requests_with_many_outstanding_each_get_their_own_answer(serve: Serve) -> None:
    async def main() -> None:
        subject = own_subject()
        async with serve() as url, await headwater.connect(url) as client, await headwater.connect(url) as service:

            async def answer(message: headwater.Message) -> None:
                await message.respond(b"to " + message.data, headers=message.headers)

            await service.subscribe(subject, queue="workers", callback=answer)
            await service.flush()
            answers = await asyncio.gather(
                *(client.request(subject, b"%d" % n, headers={"N": str(n)}, timeout=10) for n in range(200))
            )
            assert [one.data for one in answers] == [b"to %d" % n for n in range(200)]
            assert [one.headers["N"] for one in answers] == [str(n) for n in range(200)]

    finish(main(), 30)


def test_nobody_there_is_known_at_once_and_silence_after_the_timeout(serve: Serve) -> None:
    async def main() -> None:
        subject = own_subject()
        async with serve() as url, await headwater.connect(url) as client:
            async with asyncio.timeout(5):
                with pytest.raises(NoResponders, match=subject):
                    await client.request(subject, timeout=60)
            await client.subscribe(subject)
            with pytest.raises(RequestTimeout, match=subject):
                await client.request(subject, timeout=0.05)

    finish(main())


def test_drain_loses_nothing_that_was_sent_before(serve: Serve) -> None:
    async def main() -> None:
        subject = own_subject()
        received: Counter[bytes] = Counter()
        async with serve() as url, await headwater.connect(url) as publisher:
            client = await headwater.connect(url)
            iterated = await client.subscribe(subject)
            await client.subscribe(subject, callback=lambda message: received.update([message.data]))
            await client.flush()
            for number in range(5_000):
                publisher.publish(subject, b"%d" % number)
            await publisher.flush()
            await client.drain()
            assert not client.is_connected
            assert len([message async for message in iterated]) == 5_000
            assert len(received) == 5_000

    finish(main(), 30)


def test_unsubscribe_at_a_maximum_is_exact_on_both_ends(serve: Serve) -> None:
    async def main() -> None:
        subject = own_subject()
        async with serve() as url, await headwater.connect(url) as client:
            limited = await client.subscribe(subject, max_messages=2)
            for number in range(4):
                client.publish(subject, b"%d" % number)
            await client.flush()
            assert [message.data async for message in limited] == [b"0", b"1"]
            with pytest.raises(NoResponders):  # the server knows of no subscription any more
                await client.request(subject)

    finish(main())


def test_a_client_without_echo_does_not_hear_itself(serve: Serve) -> None:
    async def main() -> None:
        subject = own_subject()
        async with serve() as url, await headwater.connect(url, echo=False) as client:
            subscription = await client.subscribe(subject)
            client.publish(subject)
            await client.flush()
            assert subscription.received == 0

    finish(main())


def test_verbose_and_pedantic_connections_work_too(serve: Serve) -> None:
    async def main() -> None:
        subject = own_subject()
        async with serve() as url, await headwater.connect(url, verbose=True, pedantic=True) as client:
            subscription = await client.subscribe(subject)
            await client.publish(subject, b"1")
            assert (await subscription.next(5)).data == b"1"

    finish(main())


def test_max_payload_of_the_server_is_kept_to_the_byte(serve: Serve) -> None:
    async def main() -> None:
        subject = own_subject()
        async with serve() as url, await headwater.connect(url) as client:
            limit = client.server_info.max_payload
            subscription = await client.subscribe(subject)
            await client.publish(subject, bytes(limit))
            assert len((await subscription.next(10)).data) == limit
            with pytest.raises(PayloadTooLarge):
                client.publish(subject, bytes(limit + 1))
            await client.flush()

    finish(main(), 30)


def test_the_end_of_the_broker_reaches_the_client() -> None:
    async def main() -> None:
        received: list[BaseException] = []
        async with headwater.Broker() as broker:
            client = await headwater.connect(broker.url, error_callback=received.append, reconnect=False)
            subscription = await client.subscribe("a")
        reason = await client.wait_closed()
        assert received == [reason]
        with pytest.raises(headwater.HeadwaterError, match="lost"):
            await subscription.next()

    finish(main())
