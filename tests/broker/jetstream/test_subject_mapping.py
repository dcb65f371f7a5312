"""Where republished messages go."""

import pytest

from headwater.broker.jetstream.subject_mapping import destination, is_valid_mapping


@pytest.mark.parametrize(
    ("source", "pattern", "subject", "target"),
    [
        (">", "out.>", b"a.b", b"out.a.b"),
        ("", "out.>", b"a", b"out.a"),
        ("a.*", "b.{{wildcard(1)}}", b"a.x", b"b.x"),
        ("a.*.*", "$2.$1.z", b"a.x.y", b"y.x.z"),
        ("a.>", "b.c.>", b"a.1.2", b"b.c.1.2"),
        ("a.*", "b.$1", b"c.x", None),
        ("a", "fixed", b"a", b"fixed"),
    ],
)
def test_a_subject_is_mapped(source: str, pattern: str, subject: bytes, target: bytes | None) -> None:
    assert is_valid_mapping(source, pattern)
    assert destination(source, pattern, subject) == target


@pytest.mark.parametrize(
    ("source", "pattern"),
    [("a", ""), ("a.*", "b.{{wildcard(2)}}"), ("a", "b.>"), ("a.*", "b.{{partition(3,1)}}"), ("a.*", "b.*")],
)
def test_what_cannot_be_filled_is_refused(source: str, pattern: str) -> None:
    assert not is_valid_mapping(source, pattern)
