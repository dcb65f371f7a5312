"""The rows of subjects, against a dict: found, added, dropped, cleared and scanned in any order."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_state.subject_rows import SubjectRows

Model = dict[bytes, tuple[int, int, int]]


def seen(rows: SubjectRows) -> Model:
    found: Model = {}
    place = 0
    while place := rows.following(place):
        assert rows.name(place) not in found
        found[rows.name(place)] = rows.count(place), rows.last(place), rows.weight(place)
    return found


def put(rows: SubjectRows, model: Model, subject: bytes, numbers: tuple[int, int, int]) -> None:
    place = rows.find(subject)
    assert (place > 0) == (subject in model)
    place = place or rows.add(subject)
    rows.set(place, numbers[0], numbers[1])
    rows.set_weight(place, numbers[2])
    model[subject] = numbers


def drop(rows: SubjectRows, model: Model, subject: bytes) -> None:
    place = rows.find(subject)
    assert (place > 0) == (subject in model)
    if place:
        rows.drop(place, subject)
        del model[subject]


subjects = st.one_of(st.sampled_from([b"a", b"a.b", b"12345678", b"123456789"]), st.binary(min_size=1, max_size=40))
numbers = st.tuples(st.integers(1, 1 << 40), st.integers(-(1 << 62), 1 << 62), st.integers(0, 1 << 40))
steps = st.one_of(st.tuples(st.just("put"), subjects, numbers), st.tuples(st.just("drop"), subjects, numbers))


@given(st.lists(steps, max_size=200), st.integers(0, 200))
def test_rows_equal_a_dict(done: list[tuple[str, bytes, tuple[int, int, int]]], cleared: int) -> None:
    rows, model = SubjectRows(with_weight=True), dict[bytes, tuple[int, int, int]]()
    for number, (kind, subject, values) in enumerate(done):
        if kind == "put":
            put(rows, model, subject, values)
        else:
            drop(rows, model, subject)
        if number == cleared:
            rows.clear()
            model.clear()
        assert rows.size == len(model)
    assert seen(rows) == model


def test_rows_that_grow_and_shrink_by_the_thousand_lose_none() -> None:
    """Their slots are doubled and quartered, and rows are moved together; those of other lengths take none of these."""
    rows, model = SubjectRows(with_weight=True), dict[bytes, tuple[int, int, int]]()
    for wide in (1, 9, 3):
        names = [b"%0*d" % (8 * wide, number) for number in range(20_000)]
        for number, name in enumerate(names):
            put(rows, model, name, (1, number, wide))
        for name in names[::3] + names[1::3]:
            drop(rows, model, name)
        assert seen(rows) == model
        for name in names[2::3][5:]:
            drop(rows, model, name)
        assert seen(rows) == model
    assert rows.size == 15


def test_rows_are_moved_together_a_few_with_each_that_is_dropped() -> None:
    """Compiled. All at once, of a million, held the loop up for 40 ms."""
    rows = SubjectRows()
    names = [b"subject.%06d" % number for number in range(20_000)]
    for name in names:
        rows.set(rows.add(name), 1, 1)
    places = [rows.find(name) for name in names]
    for dropped in range(0, 15_000, 100):
        for name in names[dropped : dropped + 100]:
            rows.drop(rows.find(name), name)
        left = [0] * (dropped + 100) + [rows.find(name) for name in names[dropped + 100 :]]
        assert sum(here != there for here, there in zip(left, places, strict=True) if here) <= 400
        places = left


def test_rows_that_come_and_go_and_are_scanned_while_others_are_moved_equal_a_dict() -> None:
    rows, model = SubjectRows(with_weight=True), dict[bytes, tuple[int, int, int]]()
    names = [b"x" * (number % 40) + b"%05d" % number for number in range(20_000)]
    for number, name in enumerate(names):
        put(rows, model, name, (1, number, number))
    for number, name in enumerate(names[:15_000]):
        drop(rows, model, name)
        if number % 3 == 0:
            put(rows, model, b"new" + name, (2, number, number))
        if number % 3 == 1:
            put(rows, model, names[number // 2], (3, number, number))
        if number % 3 == 2 and number > 9_000:
            drop(rows, model, b"new" + names[number - 8_000 - number % 3])
        if number % 500 == 0:
            rows.begin_scan()
            assert seen(rows) == model
            rows.end_scan()
    assert seen(rows) == model


def test_rows_stay_where_they_are_during_a_scan() -> None:
    rows = SubjectRows()
    names = [b"subject.%06d" % number for number in range(30_000)]
    for name in names:
        rows.set(rows.add(name), 1, 1)
    rows.begin_scan()
    place, found = 0, list[bytes]()
    while place := rows.following(place):
        found.append(rows.name(place))
        if len(found) == 100:
            for name in names:
                if int(name[-6:]) % 10:
                    rows.drop(rows.find(name), name)
            place = rows.find(found[-1]) or place
    rows.end_scan()
    assert set(names[::10]) <= set(found)
    generation = rows.generation
    rows.clear()
    assert (rows.generation, rows.following(0)) == (generation + 1, 0)
