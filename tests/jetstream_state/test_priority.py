"""Priority groups: who of those that wait is next, and what becomes of a pin."""

from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.pull_requests import NextRequest, RequestQueue, Waiting
from headwater.jetstream_state.priority import PriorityGroups, with_pin


class Bench:
    """Groups of one policy, a queue, and the statuses that were sent."""

    def __init__(self, policy: str, timeout: int = 100) -> None:
        self.reported: list[str] = []
        self.groups = PriorityGroups(
            lambda: f"pin{len(self.reported)}",
            lambda pin: self.reported.append(pin),
            lambda group, reason: self.reported.append(f"{group} {reason}"),
            lambda request: self.reported.append(f"lost {request.reply.decode()}"),
        )
        self.config = ConsumerConfig(priority_groups=["A"], priority_policy=policy, priority_timeout=timeout)
        self.groups.configure(self.config)
        self.queue = RequestQueue()

    def wait(self, reply: str, **wanted: object) -> None:
        self.queue.add(Waiting(reply.encode(), NextRequest(batch=2, **wanted), 0))  # type: ignore[arg-type]

    def next(self, pending: int = 5, awaiting: int = 0) -> str:
        request = self.groups.choose(self.queue, pending, awaiting)
        return request.reply.decode() if request is not None else ""


def test_an_overflow_request_is_passed_over_until_there_is_so_much() -> None:
    bench = Bench("overflow")
    bench.wait("a", min_pending=10)
    bench.wait("b", min_ack_pending=3)
    assert bench.next(9, 2) == ""
    assert bench.next(9, 3) == "b"
    assert bench.next(10, 2) == "a"
    bench.wait("c")
    assert bench.next(9, 2) == "c"


def test_the_lowest_number_keeps_its_turn_until_it_is_full() -> None:
    bench = Bench("prioritized")
    bench.wait("five", priority=5)
    bench.wait("one", priority=1)
    bench.wait("other", priority=1)
    assert bench.next() == "one"
    bench.queue.drop_first()
    assert bench.next() == "other"
    bench.queue.drop_first()
    assert bench.next() == "five"


def test_a_pin_is_held_by_requests_and_lost_by_silence_and_old_ids_hear_of_it() -> None:
    bench = Bench("pinned_client")
    bench.wait("a")
    bench.wait("b")
    first = bench.groups.choose(bench.queue, 5, 0)
    assert first is not None
    bench.groups.pinned(first, 0, 1)
    assert (bench.reported, bench.groups.next_end(), bench.next()) == (["pin0"], 100, "a")
    assert not bench.groups.note_request("other", 10)
    assert bench.groups.note_request("pin0", 50)
    bench.groups.expire(149)
    assert bench.groups.pin == "pin0"
    bench.groups.expire(150)
    assert bench.reported[1:] == ["A timeout"]
    assert bench.next() == "b"  # what waits with the old id ends
    assert bench.reported[2:] == ["lost a"]
    assert bench.groups.next_end() == 0


def test_who_was_pinned_is_shown_and_another_policy_forgets_it() -> None:
    bench = Bench("pinned_client")
    bench.wait("a")
    request = bench.queue.first()
    assert request is not None
    bench.groups.pinned(request, 0, 0)
    shown = bench.groups.shown()
    assert shown is not None
    assert (shown[0].group, shown[0].pinned_client_id, shown[0].pinned_ts) == ("A", "pin0", "1970-01-01T00:00:00Z")
    bench.groups.configure(ConsumerConfig())
    assert (bench.groups.shown(), bench.groups.active, bench.groups.pin) == (None, False, "")


def test_the_pin_goes_behind_the_headers_of_the_message() -> None:
    assert with_pin(b"", "p") == b"NATS/1.0\r\nNats-Pin-Id: p\r\n\r\n"
    assert with_pin(b"NATS/1.0\r\nA: 1\r\n\r\n", "p") == b"NATS/1.0\r\nA: 1\r\nNats-Pin-Id: p\r\n\r\n"
