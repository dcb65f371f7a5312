"""Publishes to a stream whose creation is under way: they are stored in it, in order, or refused with it."""

import asyncio
import errno
from pathlib import Path

import pytest
from support.jetstream_in_process import Desk, served
from support.recording_files import RecordingFiles

from headwater.exchange.router import Router
from headwater.jetstream_timing import early_publishes
from headwater.jetstream_timing.early_publishes import EarlyPublishes

STORE = Path("store")
REFUSED = b"NATS/1.0 503\r\nNats-Subject: S.a\r\n\r\n"


class Held:
    """A router with a subscriber at "inbox", and publishes that are held."""

    def __init__(self) -> None:
        self.router = Router(lambda callback, *arguments: None, 1)
        self.answers: list[tuple[bytes, ...]] = []
        self.router.subscribe_internal(b"inbox", lambda *message: self.answers.append(message[2:]))

    def publish(self, payload: bytes, subject: bytes = b"S.a") -> bool:
        """Whether anybody took it."""
        return bool(self.router.publish(subject, b"inbox", b"", payload))


def test_publishes_are_given_once_in_order_and_not_answered() -> None:
    held = Held()
    with EarlyPublishes(held.router, ["S.>"]) as early:
        assert held.publish(b"1")
        assert held.publish(b"2", b"S.b")
        assert early.given() == [(b"S.a", b"inbox", b"", b"1"), (b"S.b", b"inbox", b"", b"2")]
        assert early.given() == []
    assert held.answers == []
    assert not held.publish(b"3")


def test_publishes_of_a_failed_creation_get_status_503_with_their_subject() -> None:
    held = Held()
    with pytest.raises(OSError, match="full"), EarlyPublishes(held.router, ["S.>"]):
        held.publish(b"1")
        raise OSError("full")
    assert held.answers == [(REFUSED, b"")]


def test_publishes_beyond_the_limit_find_nobody_and_neither_do_later_smaller_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(early_publishes, "MOST_BYTES", 1000)
    held = Held()
    with EarlyPublishes(held.router, ["S.>"]) as early:
        assert [held.publish(payload) for payload in (b"1", b"2" * 900, b"3")] == [True, False, False]
        assert [payload for *_, payload in early.given()] == [b"1"]


async def begin(desk: Desk) -> None:
    """A creation that is under way, and two publishes to its stream."""
    config = b'{"name": "S", "subjects": ["S.>"]}'
    desk.router.publish(b"$JS.API.STREAM.CREATE.S", b"inbox.api", b"", config)
    while not desk.router.has_interest(b"S.a"):  # noqa: ASYNC110  (some turns of the loop)
        await asyncio.sleep(0)
    assert "S" not in desk.service.streams
    for number in (b"1", b"2"):
        desk.router.publish(b"S.a", b"inbox.publish", b"", number)


def test_a_stream_begins_with_what_was_published_while_it_was_created() -> None:
    async def run() -> None:
        async with served(STORE, files=RecordingFiles()) as desk:
            answers = desk.listen("inbox.publish")
            await begin(desk)
            acks = [answer.payload for answer in await answers.take(2)]
            assert acks == [b'{"stream":"S","seq":1}', b'{"stream":"S","seq":2}']
            assert [record.payload for record in desk.service.streams["S"].contents.scan(0)] == [b"1", b"2"]
            assert (await desk.publish("S.a", b"3"))["seq"] == 3

    asyncio.run(run())


def test_a_creation_that_the_disk_refuses_refuses_what_was_published_meanwhile() -> None:
    async def run() -> None:
        files = RecordingFiles()
        async with served(STORE, files=files) as desk:
            answers, results = desk.listen("inbox.publish"), desk.listen("inbox.api")
            files.faults[files.attempts] = errno.ENOSPC
            await begin(desk)
            assert [answer.header_block for answer in await answers.take(2)] == [REFUSED, REFUSED]
            assert b"error" in (await results.next()).payload
            assert not desk.router.has_interest(b"S.a")
            await desk.make("S")
            assert (await desk.publish("S.a", b"3"))["seq"] == 1

    asyncio.run(run())
