"""The duplicate window against a plain list of everything that was ever remembered."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.model.dedup import NEVER, DuplicateWindow

SECOND = 1_000_000_000
IDS = st.sampled_from([b"", b"a", b"b", b"x" * 17, b"y" * 17, b"z" * 64, b"z" * 65, b"z" * 500])


def test_an_id_is_seen_until_the_window_has_passed() -> None:
    window = DuplicateWindow(120 * SECOND)
    window.remember(b"a", 7, 0)
    assert window.seen(b"a", 120 * SECOND - 1) == 7
    assert window.seen(b"b", 0) is None
    assert window.seen(b"a", 120 * SECOND) is None
    assert len(window) == 0


def test_a_withdrawn_id_may_be_published_again_and_does_not_take_its_successor_along() -> None:
    window = DuplicateWindow(100)
    window.remember(b"a", 1, 0)
    window.withdraw(b"a")
    window.withdraw(b"never there")
    assert window.seen(b"a", 1) is None
    window.remember(b"a", 2, 50)
    assert window.seen(b"a", 149) == 2
    assert window.seen(b"a", 150) is None


def test_a_window_of_zero_remembers_nothing() -> None:
    window = DuplicateWindow(0)
    window.remember(b"a", 1, 5)
    assert window.claim(b"a", 2, 5) and window.claim(b"a", 3, 5)
    assert window.seen(b"a", 5) is None
    assert len(window) == 0


def test_a_clock_that_steps_back_forgets_nothing_early() -> None:
    window = DuplicateWindow(100)
    window.remember(b"a", 1, 1000)
    window.remember(b"b", 2, 10)
    assert window.seen(b"a", 20) == 1
    assert window.seen(b"b", 1099) == 2
    assert window.seen(b"b", 1100) is None


def test_a_smaller_window_forgets_at_once() -> None:
    window = DuplicateWindow(100)
    window.remember(b"a", 1, 0)
    window.remember(b"b", 2, 60)
    window.resize(50, 70)
    assert window.window_ns == 50
    assert (window.seen(b"a", 70), window.seen(b"b", 70)) == (None, 2)


def test_an_id_that_looks_like_the_digest_of_another_is_not_taken_for_it() -> None:
    window = DuplicateWindow(100)
    window.remember(b"z" * 65, 1, 0)
    ((key, _, _),) = window.dump()
    assert len(key) < 65
    assert window.seen(key, 0) is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["remember", "claim", "seen", "withdraw"]), IDS, st.integers(-30, 60)), max_size=60
    )
)
def test_the_window_equals_a_list(steps: list[tuple[str, bytes, int]]) -> None:
    window = DuplicateWindow(100)
    model: dict[bytes, tuple[int, int]] = {}
    now, latest = 0, NEVER
    for offset, (verb, message_id, step) in enumerate(steps):
        now += step
        latest = latest if verb == "withdraw" else max(latest, now)
        model = {key: value for key, value in model.items() if latest - value[1] < 100}
        if verb == "remember":
            window.remember(message_id, offset, now)
            model[message_id] = (offset, latest)
        elif verb == "claim":
            assert window.claim(message_id, offset, now) == (message_id not in model)
            model.setdefault(message_id, (offset, latest))
        elif verb == "withdraw":
            window.withdraw(message_id)
            model.pop(message_id, None)
        else:
            assert window.seen(message_id, now) == model.get(message_id, (None,))[0]
            assert len(window) == len(model)


def test_the_newest_ids_of_a_window_are_its_last_ones_in_order() -> None:
    window = DuplicateWindow(1000)
    for number in range(5):
        window.remember(b"%d" % number, number, number)
    window.withdraw(b"3")
    assert [key for key, *_ in window.dump(newest=3)] == [b"2", b"4"]
