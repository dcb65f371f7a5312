"""What the other workers have of an account."""

from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_room.whole import NOTHING, Elsewhere


def test_what_two_workers_have_is_added_up() -> None:
    one = Elsewhere(streams=2, reserved={"file": 5}, weights={"memory": 1}, configs=[StreamConfig(name="a")])
    other = Elsewhere(overlaps=True, streams=3, reserved={"file": 7, "memory": 1}, reserved_by_all={"file": 9})
    both = one.joined(other)
    assert (both.overlaps, both.streams, both.reserved) == (True, 5, {"file": 12, "memory": 1})
    assert (both.reserved_by_all, both.weights) == ({"file": 9}, {"memory": 1})
    assert both.find("a") == StreamConfig(name="a")
    assert both.find("b") is None
    assert NOTHING.joined(one) == one
