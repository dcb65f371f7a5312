"""Positions and pieces of the text, where the parser's own tests do not reach."""

import pytest

from headwater.errors import ConfigError
from headwater.server.config.lexer import END, Lexer


def test_places_count_lines_and_columns_from_1() -> None:
    lexer = Lexer("ab\n\n  c", "f")
    seen = []
    for position in (0, 1, 3, 4, 6):
        lexer.position = position
        seen.append((lexer.place().line, lexer.place().column))
    assert seen == [(1, 1), (1, 2), (2, 1), (3, 1), (3, 3)]


def test_comments_end_with_their_line() -> None:
    lexer = Lexer(" # one\n // two\r\n\tname", "f")
    lexer.skip_comments()
    assert lexer.name() == ("name", False)
    assert lexer.peek() == END


def test_a_bare_word_ends_at_what_may_follow_it() -> None:
    assert [Lexer(f"word{end}x", "f").bare_word().text for end in " \t\r\n,;]}'"] == ["word"] * 9
    assert Lexer("a//b#c{d[e(f", "f").bare_word().text == "a//b#c{d[e(f"


def test_an_error_names_the_place() -> None:
    with pytest.raises(ConfigError, match=r"^f:1:3: Parse error on line 1: no"):
        lexer = Lexer("abc", "f")
        lexer.position = 2
        lexer.fail("no")
