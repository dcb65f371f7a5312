"""Workers alone: what is gathered, what order holds, and what happens when there is no room."""

import asyncio
from collections.abc import Hashable

import pytest

from headwater.errors import BufferFull, ConnectionClosed, IncompleteSend
from headwater.iggy_client.background import Background, Workers
from headwater.iggy_wire.commands import Message


class Wire:
    """Takes what is delivered, once it is open."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.got: list[tuple[Hashable, list[bytes]]] = []
        self.at_once = self.most = 0

    async def deliver(self, place: Hashable, messages: list[Message]) -> None:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await self.open.wait()
        self.at_once -= 1
        self.got.append((place, [message.payload for message in messages]))


def message(number: int) -> Message:
    return Message(b"%02d" % number)


def test_what_goes_to_one_place_goes_together_in_order_up_to_the_size_of_a_batch() -> None:
    async def main() -> None:
        wire = Wire()
        wire.open.set()
        workers = Workers(wire.deliver, Background(linger=30.0, batch=3), None)
        for number, place in enumerate("aaaabab"):
            await workers.put(place, [message(number)])
        await workers.close()
        assert wire.got == [
            ("a", [b"00", b"01", b"02"]),
            ("a", [b"03"]),
            ("b", [b"04"]),
            ("a", [b"05"]),
            ("b", [b"06"]),
        ]

    asyncio.run(main())


def test_a_batch_goes_when_its_bytes_are_enough_and_when_it_has_waited_long_enough() -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            for mode in (Background(linger=3600.0, batch=0, batch_bytes=100), Background(linger=0.001, batch_bytes=0)):
                wire = Wire()
                wire.open.set()
                workers = Workers(wire.deliver, mode, None)
                for number in range(2):
                    await workers.put("a", [message(number)])
                while not wire.got:  # noqa: ASYNC110  (no event says so)
                    await asyncio.sleep(0)
                await workers.close()

    asyncio.run(main())


@pytest.mark.parametrize(("wait", "waits"), [(0.0, False), (0.01, False), (None, True)])
def test_without_room_a_send_waits_or_is_refused(wait: float | None, waits: bool) -> None:
    async def main() -> None:
        wire = Wire()
        mode = Background(linger=0.0, most_bytes=100, wait_for_room=wait)
        workers = Workers(wire.deliver, mode, None)
        await workers.put("a", [message(0), message(1)])
        if waits:
            putting = asyncio.ensure_future(workers.put("a", [message(2)]))
            await asyncio.sleep(0)
            assert not putting.done()
            wire.open.set()
            await putting
        else:
            with pytest.raises(BufferFull, match="100 bytes wait to be sent, of 100 allowed"):
                await workers.put("a", [message(2)])
            wire.open.set()
        await workers.close()
        assert sum(len(payloads) for _, payloads in wire.got) == 2 + waits

    asyncio.run(main())


def test_no_more_requests_are_under_way_than_allowed_and_more_workers_take_turns() -> None:
    async def main() -> None:
        for allowed in (1, 3):
            wire = Wire()
            mode = Background(linger=0.0, batch=1, workers=4, in_flight=allowed, ordered=False)
            workers = Workers(wire.deliver, mode, None)
            for number in range(8):
                await workers.put("a", [message(number)])
            for _ in range(20):
                await asyncio.sleep(0)
            wire.open.set()
            await workers.close()
            assert (len(wire.got), wire.most) == (8, allowed)

    asyncio.run(main())


@pytest.mark.parametrize("error", [ConnectionClosed("gone"), TypeError("a payload is bytes")])
def test_an_error_of_any_kind_is_kept_for_the_flush(error: Exception) -> None:
    async def broken(place: Hashable, messages: list[Message]) -> None:
        raise error

    async def main() -> None:
        workers = Workers(broken, Background(linger=0.0), None)
        await workers.put("a", [message(0)])
        with pytest.raises(IncompleteSend, match=f"1 messages were not sent: {error}") as raised:
            await workers.flush()
        assert (raised.value.cause, raised.value.failed) == (error, [message(0)])
        await workers.flush()
        await workers.close()

    asyncio.run(main())


def test_a_program_whose_handler_of_errors_fails_gets_them_from_the_flush(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(place: Hashable, messages: list[Message]) -> None:
        raise ConnectionClosed("gone")

    def handler(error: IncompleteSend) -> None:
        raise ZeroDivisionError

    async def main() -> None:
        workers = Workers(broken, Background(linger=0.0), handler)
        await workers.put("a", [message(0)])
        with pytest.raises(IncompleteSend):
            await workers.close()

    asyncio.run(main())
    assert [record.getMessage() for record in caplog.records] == ["iggy_on_error_failed messages=1"]
