"""Subject transforms; tests/server/test_reference_imports.py holds them against nats-server."""

import pytest

from headwater.model.subject_transform import SubjectTransform, partition


def first(choices: int) -> int:
    assert choices > 0
    return 0


@pytest.mark.parametrize(
    ("source", "destination", "subject", "made"),
    [
        ("a.*", "b.$1", b"a.x", b"b.x"),
        ("a.*", "b", b"a.x", b"b"),
        ("a.*.*", "{{ wildcard(2) }}.$1", b"a.x.y", b"y.x"),
        ("a.>", "b.c.>", b"a.x.y", b"b.c.x.y"),
        ("a.*", "b.{{SplitFromLeft(1, 1)}}", b"a.xyz", b"b.x.yz"),
        ("a.*", "b.{{splitFromRight(1,1)}}", b"a.xyz", b"b.xy.z"),
        ("a.*", "b.{{sliceFromRight(1,2)}}", b"a.xyz", b"b.x.yz"),
        ("a.*", "b.{{split(1,-)}}", b"a.x--y", b"b.x.y"),
        ("a.*", "b.$1", b"c.x", None),
        ("*", "{{partition(1,1)}}", b"\xff", b"0"),
        ("*", "b.$1", b"\xff", b"b.\xff"),
    ],
)
def test_a_subject_is_made_of_what_the_wildcards_stood_for(
    source: str, destination: str, subject: bytes, made: bytes | None
) -> None:
    assert SubjectTransform(source, destination).apply(subject, first) == made


def test_a_random_token_is_chosen_from_as_many_as_it_says() -> None:
    transform = SubjectTransform("a", "b.{{random(3)}}")
    assert transform.apply(b"a", first) == b"b.0"
    assert transform.apply(b"a", lambda choices: choices - 1) == b"b.2"


def test_a_subject_that_was_transformed_before_is_transformed_alike_also_after_many_others() -> None:
    transform = SubjectTransform("a.*", "b.$1")
    for _ in range(2):
        assert {transform.apply(b"a.%d" % number, first) for number in range(3000)} == {
            b"b.%d" % n for n in range(3000)
        }


def test_partitions_are_the_fnv_hash_that_every_nats_server_uses() -> None:
    assert [partition(key, 10) for key in (b"", b"a", b"foobar")] == [1, 0, 0]


@pytest.mark.parametrize(
    ("source", "destination", "reason"),
    [
        ("a.*", "b.$2", "wildcard index out of range in $2: [2]"),
        ("a", "{{bogus(1)}}", "unknown function"),
        ("a.*", "{{left(1)}}", "not enough arguments"),
        ("a.*", "{{left(1,2,3)}}", "too many arguments"),
        ("a.*", "{{random(1,1)}}", "too many arguments"),
        ("a.*", "{{partition(x,1)}}", "wrong format"),
        ("a.*", "{{partition(0,1)}}", "wrong format"),
        ("a.*", "{{split(1,.)}}", ""),
        ("a.*", "b.*", "invalid subject"),
        ("a.>", "b", "invalid subject"),
        ("a", "b.>", "invalid subject"),
        ("a..b", "c", "invalid subject"),
    ],
)
def test_what_cannot_work_is_refused(source: str, destination: str, reason: str) -> None:
    with pytest.raises(ValueError) as refused:
        SubjectTransform(source, destination)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("source", "destination", "reach"),
    [
        ("a.*", "b.$1", b"b.*"),
        ("a.*", "$KV.b.{{wildcard(1)}}.x", b"$KV.b.*.x"),
        ("a.*", "b.{{split(1,-)}}.c", b"b.>"),
        ("a.>", "b.>", b"b.>"),
        ("a", "b.$KV.x$1", b"b.$KV.x$1"),
    ],
)
def test_the_reach_of_a_destination_matches_whatever_it_becomes(source: str, destination: str, reach: bytes) -> None:
    assert SubjectTransform(source, destination).reach() == reach


def test_a_partition_of_nothing_is_the_first() -> None:
    assert partition(b"x", 0) == 0


def test_the_reach_of_bytes_that_are_no_utf8_is_those_bytes() -> None:
    assert SubjectTransform("\udcff.*", "\udcff.$1").reach() == b"\xff.*"
