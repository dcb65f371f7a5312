"""Headers are added to, taken from and replaced in a block whose other bytes stay."""

from headwater.model.header_edits import with_header, with_lines, without_header


def block(*lines: str) -> bytes:
    return "\r\n".join(["NATS/1.0", *lines, "", ""]).encode()


def test_lines_are_added_behind_the_others_or_make_a_block_of_their_own() -> None:
    assert with_lines(block("a: 1"), b"b: 2", b"c: 3") == block("a: 1", "b: 2", "c: 3")
    assert with_lines(b"", b"b: 2") == block("b: 2")


def test_a_header_is_taken_out_and_the_others_stay() -> None:
    assert without_header(block("A: 1", "B: 2", "AB: 3"), b"A") == block("B: 2", "AB: 3")
    assert without_header(block("A: 1"), b"C") == block("A: 1")


def test_a_header_is_put_behind_all_others_or_where_it_was() -> None:
    before = block("a: x", "b: 1", "a: y")
    assert with_header(before, b"a", b"z") == block("b: 1", "a: z")
    assert with_header(before, b"a", b"z", in_place=True) == block("a: z", "b: 1")
    assert with_header(b"junk", b"a", b"1") == block("a: 1")


def test_a_line_behind_one_without_its_end_stands_alone() -> None:
    """It became part of the value before it, and a source did not find its own stamp again."""
    assert with_lines(b"NATS/1.0\r\nA: 1", b"B: 2") == b"NATS/1.0\r\nA: 1\r\nB: 2\r\n\r\n"
    assert with_lines(b"NATS/1.0", b"B: 2") == with_lines(b"NATS/1.0\r\n", b"B: 2") == b"NATS/1.0\r\nB: 2\r\n\r\n"
