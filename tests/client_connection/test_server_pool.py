"""Whose turn it is, and when: the clock and the dice are the test's."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from headwater.client_connection.server_pool import ReconnectPolicy, ServerPool
from headwater.client_connection.server_url import ServerAddress, parse_server_url

A, B, C = (parse_server_url(f"nats://{name}:4222") for name in "abc")
NO_JITTER = ReconnectPolicy(first_wait=1.0, longest_wait=8.0, jitter=0.0)


def pool_of(*addresses: ServerAddress, policy: ReconnectPolicy = NO_JITTER, randomise: bool = False) -> ServerPool:
    return ServerPool(addresses, policy, Random(7), randomise=randomise)


def turn(pool: ServerPool, now: float) -> tuple[str, float]:
    attempt = pool.next(now)
    assert attempt is not None
    return attempt.address.host, attempt.wait


def test_the_lost_server_comes_after_all_others_but_need_not_wait() -> None:
    pool = pool_of(A, B)
    pool.lost(A, 100.0)
    assert turn(pool, 100.0) == ("b", 0.0)
    pool.failed(B, 100.0)
    assert turn(pool, 100.0) == ("a", 0.0)


def test_a_single_server_waits_twice_as_long_after_each_failure_up_to_the_longest() -> None:
    pool = pool_of(A)
    waits = []
    for _ in range(6):
        waits.append(turn(pool, 0.0)[1])
        pool.failed(A, 0.0)
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 8.0]
    pool.succeeded(A)
    pool.failed(A, 0.0)
    assert turn(pool, 0.0) == ("a", 1.0)


def test_a_server_that_may_be_tried_now_comes_before_one_that_has_to_wait() -> None:
    pool = pool_of(A, B, C)
    pool.failed(A, 0.0)
    pool.failed(A, 0.0)
    pool.failed(B, 0.0)
    assert turn(pool, 0.0) == ("c", 0.0)
    pool.failed(C, 0.0)
    assert turn(pool, 0.5) == ("b", 0.5)
    assert turn(pool, 5.0) == ("a", 0.0)


def test_jitter_spreads_clients_over_its_whole_length() -> None:
    policy = ReconnectPolicy(jitter=1.0)
    waits = []
    for seed in range(200):
        pool = ServerPool([A], policy, Random(seed))
        pool.lost(A, 0.0)
        waits.append(turn(pool, 0.0)[1])
    assert min(waits) < 0.1
    assert max(waits) > 0.9
    assert all(0 <= wait <= 1 for wait in waits)


def test_a_server_is_given_up_after_so_many_failures_in_a_row() -> None:
    pool = pool_of(A, B, policy=ReconnectPolicy(attempts=2, jitter=0.0))
    pool.failed(A, 0.0)
    pool.succeeded(A)
    pool.failed(A, 0.0)
    assert len(pool) == 2
    pool.failed(A, 0.0)
    assert pool.addresses == [B]
    pool.failed(B, 0.0)
    pool.failed(B, 0.0)
    assert pool.next(0.0) is None


def test_a_server_that_refuses_us_twice_in_a_row_is_given_up() -> None:
    pool = pool_of(A)
    pool.failed(A, 0.0, refused=True)
    pool.failed(A, 0.0)
    pool.failed(A, 0.0, refused=True)
    assert len(pool) == 1
    pool.failed(A, 0.0, refused=True)
    assert len(pool) == 0


def test_announced_servers_join_with_the_credentials_of_who_announced_them_and_leave_again() -> None:
    here = parse_server_url("tls://u:p@a:4222")
    pool = pool_of(here)
    new = pool.announced(["10.0.0.1:4222", "a:4222", "10.0.0.1:4222", "no good url", "[::1]:9"], here)
    assert [(one.host, one.port, one.user, one.scheme, one.verify_as) for one in new] == [
        ("10.0.0.1", 4222, "u", "tls", "a"),
        ("::1", 9, "u", "tls", "a"),
    ]
    assert pool.announced(["10.0.0.1:4222"], here) == []
    assert [one.host for one in pool.addresses] == ["a", "10.0.0.1"]
    pool.announced([], here)
    assert len(pool) == 2
    pool.announced(["10.0.0.2:4222"], new[0])
    assert [one.host for one in pool.addresses] == ["a", "10.0.0.1", "10.0.0.2"], "the one that speaks stays"


def test_a_random_order_is_asked_for_and_duplicates_count_once() -> None:
    addresses = [parse_server_url(f"s{number}") for number in range(8)]
    assert pool_of(*addresses, *addresses).addresses == addresses
    firsts = Counter(
        ServerPool(addresses, NO_JITTER, Random(seed), randomise=True).addresses[0].host for seed in range(200)
    )
    assert len(firsts) == 8


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["failed", "succeeded", "lost"]), st.floats(0, 100))),
    st.integers(0, 1000),
)
def test_whatever_happens_every_server_gets_its_turn_within_the_longest_wait(
    history: list[tuple[str, str, float]], seed: int
) -> None:
    policy = ReconnectPolicy(first_wait=0.5, longest_wait=4.0, jitter=1.0)
    pool = ServerPool([A, B, C], policy, Random(seed))
    now = 0.0
    for host, what, later in history:
        now += later
        address = parse_server_url(f"nats://{host}:4222")
        if what == "succeeded":
            pool.succeeded(address)
        else:
            getattr(pool, what)(address, now)
    tried = set()
    for _ in range(12):
        attempt = pool.next(now)
        assert attempt is not None
        assert 0 <= attempt.wait <= 5.0
        now += attempt.wait
        tried.add(attempt.address)
        pool.failed(attempt.address, now)
    assert tried == {A, B, C}
