"""A consumer that waits for a subscriber is woken by the subscription."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.model.awaited import Awaited
from headwater.model.subject_match import matches


@pytest.mark.parametrize(
    ("pattern", "woken"),
    [
        (b"to.me", True),
        (b"to.*", True),
        (b"*.me", True),
        (b">", True),
        (b"to.>", True),
        (b"to.me.>", False),
        (b"to", False),
        (b"to.you", False),
        (b"*", False),
    ],
)
def test_a_subscription_wakes_consumers_that_wait_for_one_of_its_subjects_once(pattern: bytes, woken: bool) -> None:
    awaited, calls = Awaited(), list[int]()
    awaited.add(b"to.me", lambda: calls.append(1))
    awaited.add(b"to.me", lambda: calls.append(2))
    awaited.interest_arrived(pattern)
    assert calls == ([1, 2] if woken else [])
    assert bool(awaited) is not woken
    awaited.interest_arrived(pattern)
    assert calls == ([1, 2] if woken else [])


def test_a_removed_consumer_is_not_woken() -> None:
    awaited, calls = Awaited(), list[int]()

    def wake() -> None:
        calls.append(1)

    awaited.add(b"to", wake)
    awaited.remove(b"to", wake)
    awaited.remove(b"to", wake)
    awaited.interest_arrived(b">")
    assert not calls
    assert not awaited


def test_a_woken_consumer_may_wait_again_at_once() -> None:
    awaited, calls = Awaited(), list[int]()

    def wake() -> None:
        calls.append(1)
        awaited.add(b"to", wake)

    awaited.add(b"to", wake)
    for _ in range(3):
        awaited.interest_arrived(b"to")
    assert len(calls) == 3


TOKENS = st.sampled_from([b"a", b"b", b"a*", b">>", b"*", b">"])


@given(st.lists(TOKENS, min_size=1, max_size=4), st.lists(st.sampled_from([b"a", b"b", b"a*"]), min_size=1, max_size=4))
def test_consumers_whose_subject_matches_the_subscription_are_woken(pattern: list[bytes], subject: list[bytes]) -> None:
    awaited, calls = Awaited(), list[int]()
    awaited.add(b".".join(subject), lambda: calls.append(1))
    awaited.interest_arrived(b".".join(pattern))
    assert bool(calls) == matches(b".".join(pattern), b".".join(subject))


def test_every_way_to_subscribe_at_a_router_wakes() -> None:
    router, calls = Router(lambda function: None, 1), list[str]()

    def nothing(*_: bytes) -> None:
        """Accept every message."""

    def wait() -> None:
        router.awaited.add(b"to", lambda: calls.append("woken"))

    wait()
    router.subscribe(Subscription(b"to", b"", b"1"))
    assert len(calls) == 1
    wait()
    router.subscribe_internal(b"to", nothing)
    assert len(calls) == 2
    wait()
    router.subscribe_between(b"to", nothing, announce=False)
    assert len(calls) == 3
