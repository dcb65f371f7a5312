"""Go's flag syntax."""

import pytest

from headwater.errors import ConfigError
from headwater.serving.go_flags import Flag, Kind, Value, parse

FLAGS = (
    Flag(("p", "port"), "port", Kind.NUMBER, ""),
    Flag(("n", "name"), "name", Kind.TEXT, ""),
    Flag(("js",), "js", Kind.SWITCH, ""),
)


@pytest.mark.parametrize(
    ("words", "values", "rest"),
    [
        ("-p 4222", {"port": 4222}, []),
        ("--port=-1", {"port": -1}, []),
        ("-p -1 --name x", {"port": -1, "name": "x"}, []),
        ("-name=a=b", {"name": "a=b"}, []),
        ("-js -p 1", {"js": True, "port": 1}, []),
        ("-js=false", {"js": False}, []),
        ("--js=T", {"js": True}, []),
        ("-js true -p 1", {"js": True}, ["true", "-p", "1"]),
        ("-p 1 -p 2", {"port": 2}, []),
        ("-- -p 1", {}, ["-p", "1"]),
        ("- -p 1", {}, ["-", "-p", "1"]),
        ("-n -js", {"name": "-js"}, []),
        ("", {}, []),
    ],
)
def test_flags_are_read_as_go_reads_them(words: str, values: dict[str, Value], rest: list[str]) -> None:
    assert parse(words.split(), FLAGS) == (values, rest)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("-x", "flag provided but not defined: -x"),
        ("--pp 1", "flag provided but not defined: -pp"),
        ("-p", "flag needs an argument: -p"),
        ("-p abc", 'invalid value "abc" for flag -p: parse error'),
        ("-p ٢", "parse error"),
        ("-p " + "9" * 30, "parse error"),
        ("-js=maybe", 'invalid boolean value "maybe" for -js'),
        ("---p 1", "bad flag syntax: ---p"),
        ("-=1", "bad flag syntax: -=1"),
    ],
)
def test_what_is_no_flag_is_refused(words: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason.replace("(", r"\(")):
        parse(words.split(), FLAGS)
