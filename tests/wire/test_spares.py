"""Arrays of columns are used again once there is no reference to them, and not before."""

from headwater.wire.columns import KEPT_SIZE, Text
from headwater.wire.message_columns import MessageColumns, TakenMessages
from headwater.wire.message_view import composed
from headwater.wire.spares import KEPT, Spares


def filled(columns: MessageColumns, letter: bytes, size: int = 100) -> TakenMessages:
    for _ in range(10):
        columns.append(composed(b"a", b"", b"", letter * size))
    return columns.take()


def arrays(taken: TakenMessages) -> tuple[int, int]:
    """The identities of the arrays behind the payloads and behind their ends."""
    text: Text = taken.payloads
    return id(text.data.obj), id(text.offsets.obj)


def test_columns_that_were_let_go_are_filled_again() -> None:
    columns = MessageColumns()
    seen = [arrays(filled(columns, b"x")) for _ in range(4 * KEPT)]
    again = seen[2 * KEPT :]
    assert all(one in seen[: 2 * KEPT] for one in again), "no new array where an old one is free"


def test_columns_that_are_held_keep_their_bytes() -> None:
    columns = MessageColumns()
    held = [filled(columns, letter) for letter in (b"a", b"b", b"c", b"d", b"e", b"f")]
    views = [taken.payloads.data[5:] for taken in held]
    for letter, taken in zip((b"a", b"b", b"c", b"d", b"e", b"f"), held, strict=True):
        assert bytes(taken.payloads.data) == letter * 1000
    del held, taken
    filled(columns, b"z")
    assert [bytes(view[:1]) for view in views] == [b"a", b"b", b"c", b"d", b"e", b"f"], "a view is enough to hold one"


def test_arrays_of_a_burst_are_not_kept() -> None:
    columns = MessageColumns()
    big = arrays(filled(columns, b"x", KEPT_SIZE // 5))[0]
    assert big not in [arrays(filled(columns, b"y"))[0] for _ in range(2 * KEPT)]


def test_a_spare_is_neither_too_short_nor_much_too_long() -> None:
    spares: Spares[bytearray] = Spares()
    for size in (100, 300):
        spares.lend(bytearray(size))
    assert spares.find(301) is None
    assert spares.find(120) is None
    assert len(spares.find(150) or b"") == 300
    assert spares.find(150) is None, "it was found once"
