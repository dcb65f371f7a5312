"""The queue of bytes and ranges, with a socket that accepts any amount and files that fail."""

import errno
import os
import socket

import pytest

from headwater.net.piece_queue import MAX_PIECES, PieceQueue, as_bytes


class Part:
    """A fake range of a file: one call moves `steps` bytes, or raises `fails`."""

    def __init__(self, content: bytes, step: int = 1 << 20, fails: int = 0) -> None:
        self.content = content
        self.step = step
        self.fails = fails
        self.copied: list[bool] = []

    def __len__(self) -> int:
        return len(self.content)

    def send(self, descriptor: int, start: int, copied: bool = False) -> int:
        self.copied.append(copied)
        if self.fails:
            raise OSError(self.fails, os.strerror(self.fails))
        return os.write(descriptor, self.content[start : start + self.step])

    def read(self, start: int = 0) -> bytes:
        if self.fails:
            raise OSError(self.fails, os.strerror(self.fails))
        return self.content[start:]


def drained(queue: PieceQueue) -> bytes:
    """The bytes that arrive, while the peer reads whenever the socket is full."""
    ours, peers = socket.socketpair()
    with ours, peers:
        ours.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 12)
        got = bytearray()
        while queue.size:
            wanted = queue.size
            sent = queue.offer(ours.fileno())
            assert wanted == queue.size + sent
            got += peers.recv(1 << 16)
        ours.close()
        while more := peers.recv(1 << 16):
            got += more
        return bytes(got)


@pytest.mark.parametrize("step", [1, 700, 1 << 20])
def test_pieces_arrive_in_order_however_little_is_taken_at_a_time(step: int) -> None:
    queue, expected = PieceQueue(), b""
    for number in range(8):
        head, part, tail = b"<%d" % number, bytes([number]) * (40 if step == 1 else 30_000), b">" * 9_000
        for piece in (head, Part(part, step), b"", tail, Part(b""), tail):
            queue.add(piece)
        expected += head + part + tail + tail
    assert queue.size == len(expected)
    assert drained(queue) == expected


def test_more_pieces_than_one_call_takes() -> None:
    queue = PieceQueue()
    for number in range(MAX_PIECES * 2 + 3):
        queue.add(b"%d," % number)
    assert drained(queue) == b"".join(b"%d," % number for number in range(MAX_PIECES * 2 + 3))


def test_the_rest_can_be_taken_as_bytes() -> None:
    queue = PieceQueue()
    ours, peers = socket.socketpair()
    with ours, peers:
        for piece in (b"head", Part(b"0123456789", step=4), b"tail"):
            queue.add(piece)
        queue.offer(ours.fileno())
        got = peers.recv(100)
    assert got + queue.take() == b"head0123456789tail"
    assert (queue.size, queue.take()) == (0, b"")


def test_a_failed_file_raises_and_take_leaves_nothing() -> None:
    queue = PieceQueue()
    queue.add(b"head")
    queue.add(Part(b"body", fails=errno.EIO))
    ours, peers = socket.socketpair()
    with ours, peers, pytest.raises(OSError, match="Input/output"):
        queue.offer(ours.fileno())
    with pytest.raises(OSError, match="Input/output"):
        queue.take()
    assert queue.size == 0


def test_a_lost_peer_raises() -> None:
    queue = PieceQueue()
    queue.add(Part(b"body"))
    ours, peers = socket.socketpair()
    peers.close()
    with ours, pytest.raises(ConnectionError):
        queue.offer(ours.fileno())


def test_a_piece_is_bytes_or_can_be_read() -> None:
    assert (as_bytes(b"x"), as_bytes(Part(b"y"))) == (b"x", b"y")


def test_ranges_are_copied_through_this_process_once_others_are_served_between_two_answers() -> None:
    events = 0
    queue, part = PieceQueue(lambda: events), Part(b"content")
    ours, peers = socket.socketpair()
    with ours, peers:
        for seen in (1, 1, 2, 1):  # since the last answer; the request's own is one
            events += seen
            queue.add(b"head")
            queue.add(part)
            queue.offer(ours.fileno())
        assert part.copied == [False, False, True, False]
        queue.offer(ours.fileno())
        assert peers.recv(1000) == 4 * b"headcontent"
