"""A link over a real loopback socket: batching, output at the end, back-pressure, and owners that fail."""

import asyncio
import os
import select
import socket
import struct
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import pytest

from headwater.durable_files.files import File, FileRange, OsFiles
from headwater.net.link import HIGH_WATER, LINGER_BYTES, Link, read_directly
from headwater.net.tcp import dial, listen


class Owner:
    """Stores its input; `take` decides how much of it is used."""

    def __init__(self) -> None:
        self.link: Link | None = None
        self.received = b""
        self.attached = asyncio.Event()
        self.got = asyncio.Event()
        self.ended = asyncio.Event()
        self.error: Exception | None = None
        self.times_lost = 0
        self.fail = False
        self.take: Callable[[bytes], int] = len

    def attach(self, link: Link) -> None:
        self.link = link
        self.attached.set()

    def receive(self, buffer: bytearray, filled: int) -> int:
        if self.fail:
            raise ZeroDivisionError
        used = self.take(bytes(buffer[:filled]))
        self.received += buffer[:used]
        self.got.set()
        return used

    def lost(self, error: Exception | None) -> None:
        self.error = error
        self.times_lost += 1
        self.ended.set()


_directly = False


@pytest.fixture(params=["by-transport", "directly"], autouse=True)
def reading(request: pytest.FixtureRequest) -> None:
    """Each test twice: sockets are read by asyncio's transport, and by the link itself."""
    global _directly
    _directly = request.param == "directly"


def run(test: Callable[[Owner, Link, Owner, Link], Coroutine[None, None, None]]) -> None:
    """Run `test(server, server_link, client, client_link)` over one connection."""

    async def main() -> None:
        server, client = Owner(), Owner()
        listener = await listen("127.0.0.1", 0, lambda: server)
        async with asyncio.timeout(20):
            link = await dial("127.0.0.1", listener.sockets[0].getsockname()[1], client, 5.0)
            await server.attached.wait()
            assert server.link is not None
            if _directly:
                read_directly(server.link)
                read_directly(link)
            await test(server, server.link, client, link)
            link.abort()
            await client.ended.wait()
            server.link.abort()
            await server.ended.wait()
            assert (server.times_lost, client.times_lost) == (1, 1)
        listener.close()
        await listener.wait_closed()

    asyncio.run(main())


def test_a_link_without_a_descriptor_to_watch_writes_through_its_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watching a socket for writability needs a descriptor, and there may be none left."""

    def no_more(descriptor: int) -> int:
        raise OSError(24, "Too many open files")

    async def conversation(server: Owner, there: Link, client: Owner, link: Link) -> None:
        monkeypatch.setattr(os, "dup", no_more)
        there.pause_reading()
        link.output.append(b"x" * 20_000_000)
        link.flush()
        link.output.append(b"end")
        link.flush()
        assert link.pending > 0
        there.resume_reading()
        while len(server.received) < 20_000_003:
            server.got.clear()
            await server.got.wait()
        assert server.received.endswith(b"xend")

    run(conversation)


def test_a_socket_that_is_read_directly_is_not_read_by_its_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(server: Owner, server_link: Link, client: Owner, client_link: Link) -> None:
        read_directly(client_link)
        monkeypatch.setattr(Link, "get_buffer", lambda *_: pytest.fail("the transport asks where to read to"))
        server_link.output.append(b"some")
        server_link.flush()
        await client.got.wait()
        assert client.received == b"some"
        monkeypatch.undo()

    run(test)


def test_unused_input_is_passed_again_with_more_after_it() -> None:
    async def conversation(server: Owner, _: Link, client: Owner, link: Link) -> None:
        server.take = lambda data: data.rfind(b"\n") + 1
        for piece in (b"one\ntw", b"o\n", b"three\n"):
            server.got.clear()
            link.output.append(piece)
            link.flush()
            await server.got.wait()
        while server.received != b"one\ntwo\nthree\n":
            server.got.clear()
            await server.got.wait()

    run(conversation)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a link is read at each segment")
def test_a_link_that_sleeps_until_much_has_come_is_not_ready_before() -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        parts: list[int] = []
        server.take = lambda data: parts.append(len(data)) or len(data)  # type: ignore[func-returns-value]
        descriptor = server_link._descriptor
        server_link.expect(1000, 1000)
        link.output.append(bytes(999))
        link.flush()
        assert select.select([descriptor], [], [], 0) == ([], [], []), (
            "999 bytes are in the socket, and nobody is woken"
        )
        link.output.append(b"x")
        link.flush()
        await server.got.wait()
        assert parts == [1000]
        server.got.clear()
        server_link.expect(1, 1)
        link.output.append(b"y")
        link.flush()
        await server.got.wait()
        server_link.expect(1 << 20, 1 << 30)
        link.output.append(b"the last words")
        link.close()
        await server.ended.wait()
        assert server.received.endswith(b"the last words")

    run(conversation)


def test_many_flush_soon_make_one_write() -> None:
    async def conversation(server: Owner, _: Link, client: Owner, link: Link) -> None:
        for _unused in range(100):
            link.output.append(b"x")
            link.flush_soon()
        assert link.sent == 0
        await server.got.wait()
        assert server.received == b"x" * 100

    run(conversation)


def test_the_last_words_arrive_although_unread_input_is_left() -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        def refuse(data: bytes) -> int:
            server_link.output.append(b"-ERR 'no'\r\n")
            server_link.close()
            return len(data)

        server.take = refuse
        link.output.append(b"garbage" * 100_000)
        link.flush()
        await client.ended.wait()
        assert client.received == b"-ERR 'no'\r\n"

    run(conversation)


class Unread(asyncio.Transport):
    """The transport of a connection that we have ended and whose peer keeps sending."""

    def __init__(self) -> None:
        super().__init__({"sslcontext": "so that the link leaves reading and writing to us"})
        self.aborted = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It has no buffer."""

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.aborted

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """We write nothing more."""

    def close(self) -> None:
        """Ignored: no caller waits."""

    def abort(self) -> None:
        self.aborted = True


def test_input_after_our_end_is_discarded_up_to_a_limit() -> None:
    async def main() -> None:
        owner, transport = Owner(), Unread()
        link = Link(owner)
        link.connection_made(transport)
        link.close()
        for _ in range(4):
            link.get_buffer(-1)
            link.buffer_updated(LINGER_BYTES // 4)
        assert not transport.aborted, "so much may be on its way to us"
        link.buffer_updated(1)
        assert transport.aborted
        assert owner.received == b""

    asyncio.run(main())


def test_output_waits_while_the_peer_does_not_read_and_drained_tells_when_it_has() -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        server_link.pause_reading()
        chunk = bytes(HIGH_WATER)
        sent = 0
        while link.pending < 4 * HIGH_WATER:
            link.output.append(chunk)
            link.flush()
            sent += len(chunk)
        assert link.sent < sent
        assert link.sent + link.pending == sent
        waiting = asyncio.ensure_future(link.drained())
        await asyncio.sleep(0)
        assert not waiting.done()
        server_link.resume_reading()
        await waiting
        while len(server.received) < sent:
            server.got.clear()
            await server.got.wait()
        assert link.pending == 0

    run(conversation)


@pytest.mark.parametrize("way", ["itself", "a transport", "a layer"])
def test_a_link_whose_kernel_takes_less_than_it_is_given_joins_those_that_are_behind(way: str) -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        behind: dict[Link, None] = {}
        link.joins = behind
        if way == "a layer":
            link.install(Plain())
        elif way == "a transport":
            link._leave_descriptor()
        link.output.append(b"x")
        link.flush()
        assert (link.pending, behind) == (0, {})
        server_link.pause_reading()
        link.output.append(bytes(20_000_000))
        link.flush()
        assert link.pending > 0
        assert behind == {link: None}

    run(conversation)


class Plain:
    """A layer that changes nothing."""

    ready, ended = True, False

    def __init__(self) -> None:
        self._written = b""

    def write(self, data: memoryview) -> None:
        self._written += data

    def take(self) -> bytes:
        taken, self._written = self._written, b""
        return taken

    def feed(self, data: memoryview) -> None:
        raise AssertionError("nothing arrives")

    def read_into(self, space: memoryview) -> int:
        return 0

    def finish(self) -> None:
        pass


def test_a_wait_for_a_drain_ends_when_the_link_is_lost() -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        server_link.pause_reading()
        while link.pending < 2 * HIGH_WATER:
            link.output.append(bytes(HIGH_WATER))
            link.flush()
        waiting = asyncio.ensure_future(link.drained())
        await asyncio.sleep(0)
        link.abort()
        try:
            await waiting
        except ConnectionError:
            return
        raise AssertionError("drained() must not return as if all had been written")

    run(conversation)


def test_an_owner_that_raises_loses_its_link_and_no_other() -> None:
    async def conversation(server: Owner, _: Link, client: Owner, link: Link) -> None:
        server.fail = True
        link.output.append(b"x")
        link.flush()
        await client.ended.wait()
        await server.ended.wait()

    run(conversation)


def test_the_peers_address_is_host_and_port() -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        assert server_link.peer.startswith("127.0.0.1:")
        assert link.peer.split(":")[0] == "127.0.0.1"

    run(conversation)


def test_a_peer_that_resets_is_reported_with_the_error() -> None:
    async def main() -> None:
        server = Owner()
        listener = await listen("127.0.0.1", 0, lambda: server)
        async with asyncio.timeout(10):
            raw = socket.create_connection(listener.sockets[0].getsockname())
            await server.attached.wait()
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            raw.close()
            await server.ended.wait()
        assert isinstance(server.error, ConnectionError)
        listener.close()
        await listener.wait_closed()

    asyncio.run(main())


def test_link_whose_peer_has_just_reset_the_connection_closes_without_an_error() -> None:
    async def main() -> None:
        owner = Owner()
        listener = await listen("127.0.0.1", 0, lambda: owner)
        peer = socket.create_connection(listener.sockets[0].getsockname(), 5.0)
        async with asyncio.timeout(20):
            await owner.attached.wait()
            assert owner.link is not None
            descriptor = owner.link._descriptor
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
            poll = select.poll()
            poll.register(descriptor, select.POLLHUP)
            assert poll.poll(5000)  # the reset is in the kernel, and the loop has had no turn to see it
            owner.link.close()
            await owner.ended.wait()
        listener.close()
        await listener.wait_closed()
        assert owner.times_lost == 1

    asyncio.run(main())


def test_a_link_that_waited_for_room_leaves_no_descriptor_behind() -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        before = set(os.listdir("/dev/fd"))
        server_link.pause_reading()
        while link.pending < 2 * HIGH_WATER:
            link.output.append(bytes(HIGH_WATER))
            link.flush()
        assert len(os.listdir("/dev/fd")) == len(before) + 1
        server_link.resume_reading()
        while link.pending:
            server.got.clear()
            await server.got.wait()
        assert len(os.listdir("/dev/fd")) == len(before)
        server_link.pause_reading()
        while link.pending < 2 * HIGH_WATER:
            link.output.append(bytes(HIGH_WATER))
            link.flush()
        link.abort()
        await client.ended.wait()

    run(conversation)


def test_pending_output_is_written_before_a_link_closes() -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        server_link.pause_reading()
        payload = bytes(range(256)) * (1 << 15)
        link.output.append(payload)
        link.flush()
        assert link.pending
        link.close()
        server_link.resume_reading()
        while len(server.received) < len(payload):
            server.got.clear()
            await server.got.wait()
        assert server.received == payload

    run(conversation)


def test_a_link_that_is_gone_can_be_ended_again() -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        server_link.pause_reading()
        link.output.append(bytes(8 << 20))
        link.flush()
        assert link.pending
        link.close()
        assert link._transport is not None
        link._transport.close()  # as the timer does, with bytes still to write
        server_link.resume_reading()
        await client.ended.wait()
        link.abort()
        link.close()

    run(conversation)


def test_large_pieces_and_small_ones_arrive_in_order_however_much_the_kernel_takes() -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        server_link.pause_reading()
        expected = b""
        for number in range(12):
            pieces = [b"head %d " % number, b"", bytes([number]) * 700_000, b" tail"]
            link.send(pieces)
            link.send([b"small"])
            expected += b"".join(pieces) + b"small"
            assert link.sent + link.pending == len(expected)
        server_link.resume_reading()
        while len(server.received) < len(expected):
            server.got.clear()
            await server.got.wait()
        assert server.received == expected

    run(conversation)


FILE_SIZE = 6 << 20  # more than a loopback socket holds
CONTENT = bytes(range(256)) * (FILE_SIZE // 256)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[File]:
    if sys.platform != "linux":
        pytest.skip("ranges are for Linux")
    made = OsFiles().create(str(tmp_path / "file"))
    made.pwrite([CONTENT], 0)
    yield made
    made.close()


def part(file: File, start: int = 0, size: int = FILE_SIZE) -> FileRange:
    found = file.range(start, size)
    assert found is not None
    return found


async def received(server: Owner, count: int) -> bytes:
    while len(server.received) < count:
        server.got.clear()
        await server.got.wait()
    return server.received


def test_ranges_of_files_keep_their_place_among_bytes_while_the_peer_is_slow(file: File) -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        assert link.takes_ranges
        server_link.pause_reading()
        expected = b""
        link.output.append(b"first ")
        expected += b"first "
        for number in range(3):
            link.send([b"head ", part(file, 100 * number, 300), b" ", part(file)])
            expected += b"head " + CONTENT[100 * number :][:300] + b" " + CONTENT
            link.send([b"small"])
            link.output.append(b"appended")
            link.flush_soon()
            link.flush()
            expected += b"smallappended"
            assert link.sent + link.pending == len(expected)
        file.close()
        server_link.resume_reading()
        assert await received(server, len(expected)) == expected
        assert link.pending == 0

    run(conversation)


def test_a_range_behind_output_that_waits(file: File) -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        server_link.pause_reading()
        sent = 0
        while link.pending < HIGH_WATER:
            link.output.append(bytes(HIGH_WATER))
            link.flush()
            sent += HIGH_WATER
        link.send([part(file, 0, 1000)])
        waiting = asyncio.ensure_future(link.drained())
        await asyncio.sleep(0)
        assert not waiting.done()
        server_link.resume_reading()
        await waiting
        assert (await received(server, sent + 1000))[-1000:] == CONTENT[:1000]

    run(conversation)


def test_the_pending_rest_of_a_file_is_written_before_a_link_closes(file: File) -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        server_link.pause_reading()
        link.send([b"head", part(file)])
        assert link.pending > 0
        link.output.append(b"bye")
        link.close()
        server_link.resume_reading()
        await server.ended.wait()
        assert server.received == b"head" + CONTENT + b"bye"

    run(conversation)


@pytest.mark.parametrize("closes", [False, True])
def test_a_file_that_fails_ends_the_link(file: File, closes: bool) -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        server_link.pause_reading()
        link.send([part(file), part(file, 0, 50)])
        assert link.pending > 0
        file.truncate(25)
        if closes:
            link.close()
        server_link.resume_reading()
        await client.ended.wait()
        assert len(server.received) < FILE_SIZE + 50
        link.send([part(file)])

    run(conversation)


def test_a_peer_that_resets_while_a_file_is_sent_is_reported_once(file: File) -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        server_link.pause_reading()
        link.send([part(file)])
        assert link.pending > 0
        assert server_link._transport is not None
        server_link._transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        server_link.abort()
        await client.ended.wait()
        link.send([part(file)])
        assert link.pending == 0

    run(conversation)


def test_a_link_with_a_layer_sends_what_it_reads_of_the_file(file: File) -> None:
    async def conversation(server: Owner, server_link: Link, client: Owner, link: Link) -> None:
        link._leave_descriptor()  # as when a layer is installed, or on a system without plain descriptors
        assert not link.takes_ranges
        link.send([b"head", part(file)])
        assert await received(server, FILE_SIZE + 4) == b"head" + CONTENT

    run(conversation)
