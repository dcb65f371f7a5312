"""How far a purge moves a consumer (measured with nats-server 2.15.1)."""

import pytest

from headwater.jetstream_state.purge_reach import PurgeReach
from headwater.jetstream_state.subject_table import SubjectFilter


def reach(wanted: bytes = b"") -> PurgeReach:
    """Of a stream whose first message is now 3, and the first of the purge's subject 7."""
    return PurgeReach(SubjectFilter([wanted]) if wanted else None, 3, 7)


@pytest.mark.parametrize(
    ("wanted", "delivers", "start"),
    [
        (b"", [b"one.a"], 3),
        (b"one.*", [], 3),
        (b"one.a", [b"one.a"], 7),
        (b"one.*", [b"one.a"], 7),
        (b"one.>", [b"one.*", b"one.a.b"], 7),
        (b"one.a", [b"one.*"], 3),
        (b"one.*", [b"one.a", b"two.a"], 3),
        (b"one.a", [b"one.a", b"two.a"], 3),
        (b"one.a", [b"two.>", b"one.a.b"], 0),
        (b"one.*", [b"*.a"], 0),
        (b"one.>", [b"one.>"], 7),
    ],
)
def test_a_purge_moves_the_consumers_whose_messages_it_takes(wanted: bytes, delivers: list[bytes], start: int) -> None:
    assert reach(wanted).start(SubjectFilter(delivers) if delivers else None) == start
