from hypothesis import given
from hypothesis import strategies as st

from headwater.iggy.groups import Group

steps = st.lists(
    st.tuples(st.sampled_from(["join", "leave"]), st.integers(1, 5)) | st.tuples(st.just("resize"), st.integers(0, 7)),
    max_size=20,
)


@given(st.integers(0, 7), steps)
def test_every_partition_has_one_owner_and_a_change_begins_a_generation(
    partitions: int, done: list[tuple[str, int]]
) -> None:
    group = Group(partitions)
    for what, number in done:
        before = (list(group.members), group.partitions, group.generation)
        getattr(group, what)(number)
        assert (group.generation > before[2]) == ((group.members, group.partitions) != before[:2])
        owned = [index for member in group.members for index in group.of_member(member)]
        assert sorted(owned) == (list(range(group.partitions)) if group.members else [])
        for member in group.members:
            assert all(group.owns(member, index) for index in group.of_member(member))
        sizes = [len(group.of_member(member)) for member in group.members]
        assert not sizes or max(sizes) - min(sizes) <= 1


def test_a_member_that_names_no_partition_takes_turns_through_its_own() -> None:
    group = Group(5)
    group.join(1)
    group.join(2)
    assert [group.next_of(1) for _ in range(4)] == [0, 2, 4, 0]
    assert [group.next_of(2) for _ in range(3)] == [1, 3, 1]
    assert group.next_of(9) is None
    assert group.of_member(9) == [] and not group.owns(9, 0)
    assert group.leave(9) is False
