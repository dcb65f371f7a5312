"""wire/run_announcement.py: what is announced is what is read, and nothing else is taken for an announcement."""

import random

import pytest

from headwater.wire.route_ops import V2, RouteOpHandler, RouteOpParser
from headwater.wire.run_announcement import ANNOUNCED, Announced, ToAnnounce


def line(account: bytes, subject: bytes, sid: bytes, size: int, count: int) -> bytes:
    return (b"!RUN %b %b %b %d %d" % (account, subject, sid, size, count)).ljust(ANNOUNCED - 2) + b"\r\n"


class Handler(RouteOpHandler):
    def __init__(self, worker: bool) -> None:
        self.worker = worker
        self.announced: list[bytes] = []
        self.pings = self.violations = 0

    def takes_runs(self) -> bool:
        return self.worker

    def on_run(self, announced: bytes) -> int:
        self.announced.append(announced)
        return 0

    def on_ping(self) -> int:
        self.pings += 1
        return 0

    def on_violation(self, violation: int) -> int:
        self.violations += 1
        return 0


@pytest.mark.parametrize(("size", "count"), [(0, 1), (128, 2000), (70_000, 3)])
def test_the_bytes_of_a_run_follow_from_its_announcement(size: int, count: int) -> None:
    run = Announced(line(b"$G", b"a.b", b"17", size, count))
    assert (run.account, run.subject, run.sid, run.size, run.count) == (b"$G", b"a.b", b"17", size, count)
    assert run.head == b"MSG a.b 17 %d\r\n" % size
    assert run.stride == len(run.head) + size + 2
    assert run.total == count * run.stride


@pytest.mark.parametrize(("size", "count"), [(0, 1), (128, 2000), (70_000, 3)])
def test_what_is_to_be_announced_is_read_as_the_run_that_it_is(size: int, count: int) -> None:
    to_announce = ToAnnounce(b"$G", b"a.b", size, count)
    rendered = b"MSG a.b 17 %d\r\n%b\r\n" % (size, b"x" * size) * count
    text = to_announce.with_sid(b"17", len(rendered))
    assert text == line(b"$G", b"a.b", b"17", size, count)
    assert Announced(text).total == len(rendered)


def test_a_run_of_another_size_is_not_announced_and_one_that_does_not_fit_neither() -> None:
    rendered = len(b"MSG a 17 2\r\nok\r\n") * 5
    assert ToAnnounce(b"$G", b"a", 2, 5).with_sid(b"17", rendered) is not None
    assert ToAnnounce(b"$G", b"a", 2, 5).with_sid(b"17", rendered - 1) is None
    long = b"a" * 245
    assert ToAnnounce(b"$G", long, 2, 1).with_sid(b"1", len(b"MSG %b 1 2\r\nok\r\n" % long)) is None


@pytest.mark.parametrize(
    "wrong",
    [
        line(b"$G", b"a", b"1", 3, 0),
        line(b"$G", b"a", b"1", -1, 3),
        line(b"$G", b"a b", b"1", 3, 3),
        line(b"$G", b"a", b"1", 1 << 20, 64),
        line(b"$G", b"", b"1", 3, 3),
        line(b"$G", b"a", b"1", 3, 3).replace(b"!RUN", b"!RAN"),
        line(b"$G", b"a", b"1", 3, 3)[:-2] + b"  ",
        b" " * ANNOUNCED,
    ],
)
def test_what_is_no_announcement_is_refused(wrong: bytes) -> None:
    with pytest.raises(ValueError):
        Announced(wrong)


@pytest.mark.parametrize("seed", range(5))
def test_any_cut_of_the_input_gives_the_same_announcements(seed: int) -> None:
    handler = Handler(worker=True)
    parser = RouteOpParser(handler, dialect=V2)
    chance = random.Random(seed)
    sent = [line(b"$G", b"a", b"%d" % number, 3, 3) for number in range(20)]
    text = b"PING\r\n".join(sent)
    rest = bytearray()
    while text:
        cut = chance.randrange(1, 400)
        rest += text[:cut]
        text = text[cut:]
        del rest[: parser.parse(rest, 0, len(rest))]
    assert (handler.announced, handler.pings, handler.violations, rest) == (sent, 19, 0, bytearray())


def test_a_peer_that_is_no_worker_may_announce_nothing() -> None:
    handler = Handler(worker=False)
    text = bytearray(line(b"$G", b"a", b"1", 3, 3))
    RouteOpParser(handler, dialect=V2).parse(text, 0, len(text))
    assert (handler.announced, handler.violations) == ([], 1)
