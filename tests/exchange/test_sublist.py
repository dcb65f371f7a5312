"""The trie and its cache agree with the plain matching rule after any insertions and removals."""

import gc
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fake_link import FakeLink

import headwater
from headwater.exchange.sublist import CACHE_SIZE, Match, Outlet, Sublist, Subscription
from headwater.model.subject import is_valid_subject
from headwater.model.subject_match import matches
from headwater.wire.memory import OutputBuffer

tokens = st.sampled_from([b"a", b"b", b"*", b">", b"a*"])
subjects = st.lists(tokens, min_size=1, max_size=4).map(b".".join)
patterns = subjects.filter(is_valid_subject)
steps = st.lists(
    st.tuples(st.sampled_from(["insert", "remove"]), st.integers(0, 9), patterns, st.sampled_from([b"", b"q", b"r"])),
    max_size=30,
)


def naive(live: list[Subscription], subject: bytes) -> tuple[set[Subscription], dict[bytes, set[Subscription]]]:
    """Plain subscriptions and groups that match `subject`, by the plain rule."""
    plain: set[Subscription] = set()
    groups: dict[bytes, set[Subscription]] = {}
    for subscription in live:
        if matches(subscription.subject, subject):
            if subscription.queue:
                groups.setdefault(subscription.queue, set()).add(subscription)
            else:
                plain.add(subscription)
    return plain, groups


@given(steps, st.lists(subjects, min_size=1, max_size=6))
def test_the_trie_finds_what_a_naive_matcher_finds(
    changes: list[tuple[str, int, bytes, bytes]], looked_up: list[bytes]
) -> None:
    sublist, live = Sublist(), dict[int, Subscription]()
    for verb, slot, pattern, queue in changes:
        if slot in live:
            sublist.remove(live.pop(slot))
        if verb == "insert":
            live[slot] = Subscription(pattern, queue, b"%d" % slot)
            sublist.insert(live[slot])
        for subject in looked_up:
            match = sublist.match(subject)
            plain, groups = naive(list(live.values()), subject)
            assert len(match.plain) == len(set(match.plain))
            assert set(match.plain) == plain
            assert {frozenset(members) for members in match.groups} == {frozenset(group) for group in groups.values()}
            assert sublist.has_interest(subject) == bool(plain or groups)
    assert sublist.count == len(live)


def test_removing_an_unknown_subscription_has_no_effect() -> None:
    sublist = Sublist()
    kept = Subscription(b"a.b", b"", b"1")
    sublist.insert(kept)
    sublist.remove(Subscription(b"a.b", b"", b"1"))
    sublist.remove(Subscription(b"a.c.d", b"q", b"1"))
    assert sublist.match(b"a.b").plain == [kept]
    assert sublist.count == 1


def test_a_queue_group_is_one_group_across_literal_and_wildcard_subscriptions() -> None:
    sublist = Sublist()
    for position, pattern in enumerate([b"a.b", b"a.*", b"a.>", b">"]):
        sublist.insert(Subscription(pattern, b"q", b"%d" % position))
    assert [len(members) for members in sublist.match(b"a.b").groups] == [4]


def test_a_match_is_reused_until_interest_in_its_subjects_changes() -> None:
    sublist = Sublist()
    sublist.insert(Subscription(b"a.>", b"", b"0"))
    first = sublist.match(b"a.b")
    assert sublist.match(b"a.b") is first
    assert sublist.match(b"a.c") is first, "whoever reaches the same subscriptions shares them"
    for other in (b"z", b"_INBOX.a.*", b"$x.>"):
        sublist.insert(Subscription(other, b"", b"1"))
        assert sublist.match(b"a.b") is first or other != b"z"
    sublist.insert(Subscription(b"a.b", b"", b"2"))
    assert sublist.match(b"a.b") is not first


def test_what_is_kept_with_a_match_is_gone_with_any_change_where_that_is_wanted() -> None:
    sublist = Sublist(as_one=True)
    sublist.insert(Subscription(b"a.b", b"", b"0"))
    first, none = sublist.match(b"a.b"), sublist.match(b"n")
    sublist.insert(Subscription(b"z", b"", b"1"))
    assert sublist.match(b"a.b") is not first and sublist.match(b"n") is not none
    first = sublist.match(b"a.b")
    sublist.renew()
    assert sublist.match(b"a.b") is not first


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 999), st.integers(0, 3)), min_size=30, max_size=300))
def test_among_many_known_subjects_those_that_change_are_looked_for_anew(changes: list[tuple[int, int, int]]) -> None:
    """The table of subjects is so full that what is taken out of it has others around it."""
    sublist, live = Sublist(), dict[tuple[int, int], Subscription]()
    for number in range(0, 1000, 3):
        live[number, 0] = Subscription(b"many.%d.x" % number, b"", b"0")
        sublist.insert(live[number, 0])
    patterns = [b"many.%d.x", b"many.%d.x", b"many.%d.*", b"_INBOX.%d.*"]
    for verb, number, kind in changes:
        for near in range(number, number + 12):
            match = sublist.match(b"many.%d.x" % near)
            assert set(match.plain) == {live[key] for key in ((near, 0), (near, 1), (near, 2)) if key in live}
        if (number, kind) in live:
            sublist.remove(live.pop((number, kind)))
        if verb:
            live[number, kind] = Subscription(patterns[kind] % number, b"", b"1")
            sublist.insert(live[number, kind])
    for number in range(1000):
        match = sublist.match(b"many.%d.x" % number)
        assert set(match.plain) == {live[key] for key in ((number, 0), (number, 1), (number, 2)) if key in live}


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 7), st.sampled_from([b"*", b">", b"*.x", b"x.*"])),
        min_size=1,
        max_size=60,
    )
)
def test_patterns_of_any_length_come_and_go_while_more_and_more_subjects_are_known(
    changes: list[tuple[int, int, bytes]],
) -> None:
    """Among so many the table grows several times, and keeps what it knows."""
    sublist, live = Sublist(), dict[bytes, Subscription]()
    known: list[bytes] = []
    for number, length, end in changes:
        head = b".".join([b"deep", b"%d" % number, *(b"%d" % token for token in range(7))][:length])
        pattern = head + b"." + end
        if pattern in live:
            sublist.remove(live.pop(pattern))
        else:
            live[pattern] = Subscription(pattern, b"", b"1")
            sublist.insert(live[pattern])
        known.extend(b"deep.%d.%d.x" % (len(known) + more, number) for more in range(40))
        for subject in (
            *known[-80:],
            head,
            head + b".x",
            head + b".x.x",
            head + b".0",
            b"deep.%d.0.1.2.3.4.x" % number,
        ):
            assert set(sublist.match(subject).plain) == naive(list(live.values()), subject)[0]
    for subject in known:
        assert set(sublist.match(subject).plain) == naive(list(live.values()), subject)[0]


@pytest.mark.skipif(not headwater.__compiled__, reason="interpreted, a change of a pattern makes all stale")
def test_a_change_of_a_pattern_concerns_subjects_that_begin_as_it_does() -> None:
    sublist = Sublist()
    for number in range(50):
        sublist.insert(Subscription(b"a.%d.x" % number, b"", b"0"))
    before = [sublist.match(b"a.%d.x" % number) for number in range(50)]
    pattern = Subscription(b"a.7.*", b"", b"1")
    sublist.insert(pattern)
    assert [number for number in range(50) if sublist.match(b"a.%d.x" % number) is not before[number]] == [7]
    sublist.remove(pattern)
    assert [number for number in range(50) if sublist.match(b"a.%d.x" % number) is not before[number]] == [7]


@pytest.mark.skipif(not headwater.__compiled__, reason="interpreted, a change of a pattern makes all stale")
def test_among_very_many_subjects_few_others_are_looked_for_anew_for_a_change_of_a_pattern() -> None:
    """Of 20,000, some 370 share a number with one of 300 changes in the small table, and some 90 in the large one."""
    sublist = Sublist()
    subjects = [b"a.%d.x" % number for number in range(20_000)]
    for subject in subjects:
        sublist.insert(Subscription(subject, b"", b"0"))
    before = [sublist.match(subject) for subject in subjects]
    for number in range(300):
        sublist.insert(Subscription(b"a.%d.*" % number, b"", b"1"))
    assert [len(sublist.match(subject).plain) for subject in subjects] == [2] * 300 + [1] * 19_700
    assert sum(sublist.match(subjects[number]) is not before[number] for number in range(300, 20_000)) < 200


@pytest.mark.skipif(not headwater.__compiled__, reason="interpreted, a dict is the table")
def test_a_table_that_grows_keeps_what_it_knows() -> None:
    sublist = Sublist()
    subscriptions = [Subscription(b"kept.%d" % number, b"", b"1") for number in range(20_000)]
    for subscription in subscriptions:
        sublist.insert(subscription)
    first = [sublist.match(b"kept.%d" % number) for number in range(100)]
    for subscription in subscriptions:
        sublist.match(subscription.subject)
    sublist.insert(Subscription(b"other", b"", b"1"))  # what is not in the table would be made anew
    assert sum(sublist.match(b"kept.%d" % number) is first[number] for number in range(100)) == 100


def test_a_flood_of_one_time_subjects_leaves_every_answer_right() -> None:
    sublist = Sublist()
    sublist.insert(Subscription(b"once.*", b"", b"0"))
    for number in range(3 * CACHE_SIZE):
        if number % 4 == 0:
            sublist.insert(Subscription(b"once.%d" % number, b"", b"1"))
        expected = 2 if number % 4 == 0 else 1
        assert len(sublist.match(b"once.%d" % number).plain) == expected


def test_subjects_that_come_again_stay_right_when_there_are_more_than_the_table_has_room_for() -> None:
    sublist = Sublist()
    wild = Subscription(b"again.*.x", b"", b"0")
    sublist.insert(wild)
    for number in range(0, 90_000, 9000):
        sublist.insert(Subscription(b"again.%d.x" % number, b"", b"1"))
    for _ in range(3):
        for number in range(90_000):
            match = sublist.match(b"again.%d.x" % number)
            assert len(match.plain) == 1 + (number % 9000 == 0)


def test_subscriptions_that_ended_are_not_held_on_to() -> None:
    sublist = Sublist()
    ended = [Subscription(b"once.%d" % number, b"", b"1") for number in range(5000)]
    free = sys.getrefcount(ended[7])
    for subscription in ended:
        sublist.insert(subscription)
    for subscription in ended:
        assert sublist.match(subscription.subject).plain == [subscription]
    for subscription in ended:
        sublist.remove(subscription)
    held = sys.getrefcount(ended[7])
    assert held == free


def test_subscriptions_that_come_and_go_beside_others_are_not_held_on_to_for_long() -> None:
    sublist = Sublist()
    staying = [Subscription(b"stays.%d" % number, b"", b"1") for number in range(400)]
    for subscription in staying:
        sublist.insert(subscription)
    ended = [Subscription(b"once.%d" % number, b"", b"1") for number in range(3000)]
    free = sys.getrefcount(ended[7])
    for number, subscription in enumerate(ended):
        sublist.insert(subscription)
        assert sublist.match(subscription.subject).plain == [subscription]
        assert sublist.match(staying[number % 400].subject).plain == [staying[number % 400]]
        sublist.remove(subscription)
    del subscription
    held = sum(sys.getrefcount(ended[number]) > free for number in range(3000))
    assert held <= (150 if headwater.__compiled__ else 3200), "interpreted, eight for each that stays"


def test_patterns_that_come_and_go_over_subjects_that_stay_are_not_held_on_to_for_long() -> None:
    sublist = Sublist()
    staying = [Subscription(b"stays.%d" % number, b"", b"1") for number in range(400)]
    for subscription in staying:
        sublist.insert(subscription)
    ended = [Subscription(b"stays.*", b"", b"1") for _ in range(3000)]
    free = sys.getrefcount(ended[7])
    for number, subscription in enumerate(ended):
        sublist.insert(subscription)
        assert set(sublist.match(staying[number % 400].subject).plain) == {subscription, staying[number % 400]}
        sublist.remove(subscription)
    del subscription
    held = sum(sys.getrefcount(ended[number]) > free for number in range(3000))
    assert held <= (150 if headwater.__compiled__ else 3200), "interpreted, eight for each that stays"


def test_of_many_ways_in_which_patterns_overlap_only_some_are_kept() -> None:
    sublist = Sublist()
    for number in range(150):  # subjects that begin with _ are not in the table, which keeps what it has
        sublist.insert(Subscription(b"_%d.*" % number, b"", b"1"))
        sublist.insert(Subscription(b"*.%d" % number, b"", b"2"))
    before = sum(isinstance(each, Match) for each in gc.get_objects())
    for number in range(150 * 150):
        assert len(sublist.match(b"_%d.%d" % divmod(number, 150)).plain) == 2
    kept = sum(isinstance(each, Match) for each in gc.get_objects()) - before
    assert kept <= 2 * CACHE_SIZE + 300, "interpreted, the cache of subjects has as many"


def test_so_many_different_answers_are_not_all_kept() -> None:
    sublist = Sublist()
    for number in range(CACHE_SIZE + 2):
        sublist.insert(Subscription(b"once.%d" % number, b"", b"1"))
    first = sublist.match(b"once.0")
    for number in range(1, CACHE_SIZE + 2):
        sublist.match(b"once.%d" % number)
    assert sublist.match(b"once.0").plain == first.plain


def test_of_subjects_that_come_in_turn_most_are_known_when_there_are_a_few_too_many() -> None:
    sublist = Sublist()
    subjects = [b"turn.%d" % number for number in range(CACHE_SIZE + 100)]
    for subject in subjects:
        sublist.insert(Subscription(subject, b"", b"1"))
    before = [sublist.match(subject) for subject in subjects]
    assert (
        sum(sublist.match(subject) is match for subject, match in zip(subjects, before, strict=True)) > CACHE_SIZE // 2
    )


def test_only_clients_that_get_one_message_each_are_separate() -> None:
    link, output = FakeLink(), OutputBuffer()
    one, other = Outlet(link, output), Outlet(link, output)
    sublist = Sublist()
    sublist.insert(Subscription(b"a", b"", b"1", one))
    sublist.insert(Subscription(b"a", b"", b"1", other))
    sublist.insert(Subscription(b"b", b"q", b"2", one))
    sublist.insert(Subscription(b"c.*", b"", b"3", one))
    sublist.insert(Subscription(b"c.>", b"", b"4", one))
    sublist.insert(Subscription(b"d", b"", b"", None, lambda *_: None))
    assert [sublist.match(subject).separate for subject in (b"a", b"b", b"c.x", b"d", b"e")] == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_a_subject_with_the_prefix_of_the_previous_one_finds_its_own_subscriptions() -> None:
    sublist = Sublist()
    for number, subject in enumerate((b"_INBOX.a.*", b"_INBOX.a.1", b"_INBOX.>", b"_INBOX.b.*", b"x.>", b"*.b.1")):
        sublist.insert(Subscription(subject, sid=b"%d" % number))

    def sids(subject: bytes) -> list[bytes]:
        return sorted(subscription.sid for subscription in sublist.match(subject).plain)

    for _ in range(2):
        assert sids(b"_INBOX.a.1") == [b"0", b"1", b"2"]
        assert sids(b"_INBOX.a.2") == [b"0", b"2"]
        assert sids(b"_INBOX.a.2.3") == [b"2"]
        assert sids(b"_INBOX.a.") == []
        assert sids(b"_INBOX.a") == [b"2"]
        assert sids(b"_INBOX.b.1") == [b"2", b"3", b"5"]
        assert sids(b"_INBOX.b.2") == [b"2", b"3"]
        assert sids(b"x.b.1") == [b"4", b"5"]
    added = Subscription(b"_INBOX.a.2", sid=b"9")
    sublist.insert(added)
    assert sids(b"_INBOX.a.2") == [b"0", b"2", b"9"]
    sublist.remove(added)
    assert sids(b"_INBOX.a.2") == [b"0", b"2"]


def test_a_prefix_covered_by_a_wildcard_is_cached_for_whole_tokens_and_until_interest_changes() -> None:
    sublist = Sublist()
    for number, subject in enumerate((b"all.>", b"one.*", b"other.x", b"one.a.b")):
        sublist.insert(Subscription(subject, sid=b"%d" % number))

    def sids(subject: bytes) -> list[bytes]:
        return sorted(subscription.sid for subscription in sublist.match(subject).plain)

    for _ in range(2):
        assert sids(b"all.a") == sids(b"all.b.c") == sids(b"all.b.c.d") == [b"0"]
        assert sids(b"all.") == sids(b"all..b") == sids(b"all.b.") == sids(b"all") == sids(b"allx.b") == []
        assert sids(b"one.z") == [b"1"]
        assert sids(b"one.z.z") == sids(b"one.") == []
        assert sids(b"one.a") == [b"1"]
        assert sids(b"one.a.b") == [b"3"]
    added = Subscription(b"all.b", sid=b"9")
    assert sids(b"all.b") == [b"0"]
    sublist.insert(added)
    assert sids(b"all.b") == [b"0", b"9"]
    assert sids(b"all.c") == [b"0"]
    sublist.remove(added)
    assert sids(b"all.b") == [b"0"]


def test_match_of_some_groups_alone_counts_their_only_members_as_plain() -> None:
    sublist = Sublist()
    for number, queue in enumerate((b"", b"a", b"b", b"b")):
        sublist.insert(Subscription(b"x", queue, b"%d" % number))
    match = sublist.match(b"x")
    for queues, plain, in_groups in (([b"a"], [b"0", b"1"], []), ([b"b"], [b"0"], [b"2", b"3"]), ([], [b"0"], [])):
        serving = match.serving(queues, True)
        assert [member.sid for member in serving.plain] == plain
        assert [member.sid for group in serving.groups for member in group] == in_groups
        assert match.serving(queues, True) is serving
    assert [member.sid for member in match.serving([b"a"], False).plain] == [b"1"]
    assert match.serving([b"c"], False).plain == []


def large_pages() -> int:
    """The number of mappings of this process that want large pages."""
    flags = [line.split() for line in Path("/proc/self/smaps").read_text().splitlines() if line.startswith("VmFlags:")]
    return sum("hg" in one for one in flags)


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or not headwater.__compiled__, reason="a mapping of Linux's own"
)
def test_a_large_table_of_subjects_asks_for_large_pages_and_gives_them_back() -> None:
    before = large_pages()
    sublist = Sublist()
    subscriptions = [Subscription(b"large.%d" % number, b"", b"1") for number in range(20_000)]
    for subscription in subscriptions:
        sublist.insert(subscription)
    for subscription in subscriptions:
        assert sublist.match(subscription.subject).plain == [subscription]
    for subscription in subscriptions:
        assert sublist.match(subscription.subject).plain == [subscription]
    if Path("/sys/kernel/mm/transparent_hugepage").exists():
        assert large_pages() == before + 1
    for subscription in subscriptions:
        sublist.remove(subscription)
    assert large_pages() == before
