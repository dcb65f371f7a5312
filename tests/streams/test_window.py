"""A stretch of a file in memory."""

from headwater.streams.window import Window


def fetch_from(content: bytes):  # type: ignore[no-untyped-def]
    return lambda size, position: content[position : position + size]


def test_a_window_finds_what_straddles_its_edges() -> None:
    content = bytes(95) + b"needle" + bytes(50)
    for size in range(1, 200):
        window = Window(fetch_from(content), len(content), size)
        assert window.find(b"needle", 0) == 95
        assert window.find(b"needle", 96) == -1
        data, index = window.at(95, 6)
        assert data[index : index + 6] == b"needle"


def test_a_window_over_a_file_that_shrank_ends() -> None:
    assert Window(fetch_from(b"short"), 1000, 10).find(b"needle", 0) == -1


def test_a_search_ends_at_its_limit() -> None:
    window = Window(fetch_from(bytes(95) + b"needle" + bytes(50)), 151, 60)
    assert window.find(b"needle", 0, 101) == 95
    assert window.find(b"needle", 0, 100) == -1
    assert window.slice(95, 101) == b"needle"
