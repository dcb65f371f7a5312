"""The window of unacknowledged publishes: what fills it, what frees it, and what ends it."""

import asyncio

import pytest
from support.scripted_server import Peer, conversation, finish

from headwater.errors import (
    HeaderError,
    JetStreamError,
    LocalProtocolError,
    NoResponders,
    RemoteProtocolError,
    RequestTimeout,
    TransportError,
)


async def receive_publish(peer: Peer) -> bytes:
    """The reply subject of the next PUB or HPUB."""
    control = (await peer.receive_line()).split()
    assert control[0] in (b"PUB", b"HPUB"), control
    await peer.receive(int(control[-1]) + 2)
    return control[2]


def ack(peer: Peer, reply: bytes, answer: bytes = b'{"stream":"S","seq":1}') -> None:
    peer.send(b"MSG %s 1 %d\r\n%s\r\n" % (reply, len(answer), answer))


def test_acknowledgements_are_counted_with_duplicates_and_the_last_sequence() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            async with client.jetstream().publisher() as publisher:
                assert (await peer.receive_line()).startswith(b"SUB _INBOX.")
                for number in range(3):
                    await publisher.publish("a", b"x", msg_id=str(number))
                replies = [await receive_publish(peer) for _ in range(3)]
                assert publisher.outstanding == 3
                ack(peer, replies[1], b'{"stream":"S","seq":7}')
                ack(peer, replies[0], b'{"stream":"S","seq":3,"duplicate":true}')
                ack(peer, replies[0])  # a second one for the same message counts for nothing
                ack(peer, replies[2], b'{"stream":"S","seq":5}')
                await publisher.wait_acknowledged()
                assert (publisher.acknowledged, publisher.duplicates, publisher.last_sequence) == (3, 1, 7)
            assert await peer.receive_line() == b"UNSUB 1"

    finish(main())


def test_a_full_window_waits_until_half_of_it_is_free() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            async with client.jetstream().publisher(window=4) as publisher:
                await peer.receive_line()
                for _ in range(4):
                    await publisher.publish("a")
                replies = [await receive_publish(peer) for _ in range(4)]
                fifth = asyncio.create_task(publisher.publish("a"))
                ack(peer, replies[0])
                flushing = asyncio.create_task(client.flush())
                await peer.answer_ping()
                await flushing
                assert not fifth.done()
                ack(peer, replies[1])
                await fifth
                for reply in [*replies[2:], await receive_publish(peer)]:
                    ack(peer, reply)

    finish(main())


def test_several_tasks_share_a_publisher_and_none_is_forgotten() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            async with client.jetstream(timeout=5).publisher(window=1) as publisher:
                await peer.receive_line()
                tasks = [asyncio.create_task(publisher.publish("a")) for _ in range(4)]
                for _ in tasks:
                    ack(peer, await receive_publish(peer))
                await asyncio.gather(*tasks)
                await publisher.wait_acknowledged()
                assert publisher.acknowledged == 4

    finish(main())


FAILURES = [
    (b'{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"}}', JetStreamError),
    (b"no json", RemoteProtocolError),
    (b"", RemoteProtocolError),
]


@pytest.mark.parametrize(("answer", "kind"), FAILURES)
def test_the_first_failure_ends_the_publishing_and_is_raised_at_the_end(answer: bytes, kind: type[Exception]) -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            with pytest.raises(kind):
                async with client.jetstream().publisher() as publisher:
                    await peer.receive_line()
                    await publisher.publish("a")
                    ack(peer, await receive_publish(peer), answer)
            assert await peer.receive_line() == b"UNSUB 1"

    finish(main())


def test_a_refusal_says_which_message_it_was() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            with pytest.raises(JetStreamError) as caught:
                async with client.jetstream().publisher() as publisher:
                    await peer.receive_line()
                    await publisher.publish("a.1")
                    await publisher.publish("a.2")
                    await receive_publish(peer)
                    ack(peer, await receive_publish(peer), FAILURES[0][0])
            assert caught.value.value == "a.2"
            assert caught.value.__notes__ == ["It was message 2 of 2 so far, on 'a.2'."]

    finish(main())


def test_a_failure_is_raised_by_the_next_publish_to_every_task() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            async with client.jetstream().publisher(window=1) as publisher:
                await peer.receive_line()
                await publisher.publish("a")
                waiting = [asyncio.create_task(publisher.publish("a")) for _ in range(3)]
                peer.send(b"HMSG %s 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n" % await receive_publish(peer))
                outcomes = await asyncio.gather(*waiting, return_exceptions=True)
                assert [type(outcome) for outcome in outcomes] == [NoResponders] * 3
                with pytest.raises(NoResponders, match="no stream captures 'a'"):
                    await publisher.publish("a")
                publisher._failure = None

    finish(main())


def test_silence_is_a_timeout_that_says_how_much_is_missing() -> None:
    async def main() -> None:
        async with conversation() as (client, _):
            with pytest.raises(RequestTimeout, match=r"2 messages within 0\.02 s, the first on 'a\.1'"):
                async with client.jetstream(timeout=0.02).publisher() as publisher:
                    await publisher.publish("a.1")
                    await publisher.publish("a.2")

    finish(main())


def test_a_connection_lost_with_acknowledgements_missing_is_the_reason() -> None:
    async def main() -> None:
        async with conversation(error_callback=lambda _: None) as (client, peer):
            with pytest.raises(TransportError, match="lost"):
                async with client.jetstream().publisher() as publisher:
                    await publisher.publish("a")
                    peer.hang_up()

    finish(main())


def test_a_connection_that_comes_back_has_lost_the_acknowledgements_all_the_same() -> None:
    async def main() -> None:
        async with conversation(error_callback=lambda _: None, reconnect=True) as (client, peer):
            with pytest.raises(TransportError, match="lost"):
                async with client.jetstream(timeout=60).publisher() as publisher:
                    await publisher.publish("a")
                    peer.cut()

    finish(main())


def test_a_refused_message_takes_no_room_in_the_window() -> None:
    async def main() -> None:
        async with conversation() as (client, _):
            async with client.jetstream().publisher(window=1) as publisher:
                with pytest.raises(HeaderError):
                    await publisher.publish("a", headers={"K": "\r\n"})
                assert publisher.outstanding == 0

    finish(main())


def test_an_error_of_the_program_is_not_hidden_behind_missing_acknowledgements() -> None:
    async def main() -> None:
        async with conversation() as (client, _):
            with pytest.raises(KeyError):
                async with client.jetstream().publisher() as publisher:
                    await publisher.publish("a")
                    raise KeyError("mine")

    finish(main())


def test_a_publisher_leaves_nothing_behind_on_the_client() -> None:
    async def main() -> None:
        async with conversation() as (client, _):
            for _ in range(10):
                async with client.jetstream().publisher():
                    pass
            assert not client._connection.events._listeners
            assert not client._connection.queues

    finish(main())


def test_misuse_is_told() -> None:
    async def main() -> None:
        async with conversation() as (client, _):
            with pytest.raises(LocalProtocolError, match="at least one"):
                client.jetstream().publisher(window=0)
            with pytest.raises(LocalProtocolError, match="async with"):
                await client.jetstream().publisher().publish("a")

    finish(main())
