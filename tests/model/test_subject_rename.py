"""Names of an imported subject, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.subject_match import matches
from headwater.model.subject_rename import SubjectRename, common_pattern

TOKEN = st.sampled_from(["a", "b", "*"])
PATTERN = st.builds(
    lambda tokens, tail: ".".join([*tokens, *([">"] if tail else [])]),
    st.lists(TOKEN, min_size=1, max_size=3),
    st.booleans(),
)
LITERAL = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4).map(".".join)


@given(PATTERN, PATTERN, LITERAL)
def test_the_common_pattern_matches_what_both_match(left: str, right: str, subject: str) -> None:
    both = common_pattern(left.encode(), right.encode())
    expected = matches(left.encode(), subject.encode()) and matches(right.encode(), subject.encode())
    assert (both is not None and matches(both, subject.encode())) == expected


@given(PATTERN, LITERAL, st.randoms())
def test_a_name_turned_and_turned_back_is_the_same(remote: str, subject: str, random: object) -> None:
    stars = list(range(1, remote.split(".").count("*") + 1))
    random.shuffle(stars)  # type: ignore[attr-defined]
    local = ".".join(["x", *(f"${star}" for star in stars), *([">"] if remote.endswith(">") else [])])
    rename = SubjectRename(remote, local)
    if matches(remote.encode(), subject.encode()):
        here = rename.to_local(subject.encode())
        assert matches(rename.local, here)
        assert rename.to_remote(here) == subject.encode()
    assert matches(rename.remote, rename.to_remote(rename.local).replace(b"*", b"a").replace(b">", b"a"))


def test_a_prefix_stands_before_the_whole_subject() -> None:
    rename = SubjectRename("s.*.>", prefix="pre.fix")
    assert rename.local == b"pre.fix.s.*.>"
    assert rename.to_local(b"s.1.2.3") == b"pre.fix.s.1.2.3"
    assert rename.to_remote(b"pre.fix.s.*.2") == b"s.*.2"


@pytest.mark.parametrize("local", ["a", "a.$1", "a.$1.$1", "a.$3.$1", "a..$1.$2", "a.*.*.*", "a.>"])
def test_what_cannot_be_turned_back_is_refused(local: str) -> None:
    with pytest.raises(ValueError, match="invalid"):
        SubjectRename("s.*.*", local)
