"""The configuration language: what a text says, where it says it, and that no text does anything else."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import ConfigError
from headwater.server.config.document import plain
from headwater.server.config.parser import MAX_DEPTH, Document, parse


def no_file(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory", path)


def read(text: str, files: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None) -> Document:
    there = files or {}

    def open_file(path: str) -> str:
        return there[path] if path in there else no_file(path)

    return parse(text, "server.conf", open_file, environment or {})


def says(text: str, files: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None) -> object:
    return plain(read(text, files, environment).settings)


def refusal(text: str, files: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text, files, environment)
    return caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "port: 4222",
        "port = 4222",
        "port 4222",
        "port:4222;",
        "port 4222, ",
        '"port": 4222',
        "'port' 4222 # a comment",
        "# before\nport = 4222 // behind",
        '{"port": 4222}',
        '{\r\n\t"port": 4222,\r\n}\r\n',
        "port\n\n4222",
        "port: 4222\n}",
    ],
)
def test_a_setting_has_many_spellings(text: str) -> None:
    assert says(text) == {"port": 4222}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("42", 42),
        ("-7", -7),
        ("1.5", 1.5),
        ("-0.25", -0.25),
        ("1k", 1000),
        ("1kb", 1024),
        ("1KiB", 1024),
        ("2ki", 2048),
        ("64MB", 64 << 20),
        ("1m", 1_000_000),
        ("3G", 3_000_000_000),
        ("1gib", 1 << 30),
        ("1t", 10**12),
        ("1pb", 1 << 50),
        ("1e", 10**18),
        ("yes", True),
        ("ON", True),
        ("true", True),
        ("off", False),
        ("No", False),
        ("false", False),
        ('"yes"', "yes"),
        ("10s", "10s"),
        ("1m30s", "1m30s"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1:4222", "127.0.0.1:4222"),
        ("localhost:-1", "localhost:-1"),
        ("nats://a:4222//x#y", "nats://a:4222//x#y"),
        ("a.b.>", "a.b.>"),
        ("$2a$11$W2zko751KUvVy59mUTWmpO", "$2a$11$W2zko751KUvVy59mUTWmpO"),
        ("2026-11-21T08:30:00Z", datetime(2026, 11, 21, 8, 30, tzinfo=UTC)),
        ('"a\\tb\\x41\\"\\\\"', 'a\tbA"\\'),
        ("a\\x20b", "a b"),
        ("'a\\tb'", "a\\tb"),
        ('"two\nlines"', "two\nlines"),
        ("(\nanything } ] # at all\n)", "\nanything } ] # at all\n"),
        ("[]", []),
        ("[1, 2,\n3 // three\n]", [1, 2, 3]),
        ("[a\nb\n{c: d}]", ["a", "b", {"c": "d"}]),
        ("{}", {}),
        ("{a: 1, b = 2; c 3\nd {e: [f]}}", {"a": 1, "b": 2, "c": 3, "d": {"e": ["f"]}}),
        ("{a:\n1}", {"a": 1}),
    ],
)
def test_values(word: str, value: object) -> None:
    assert says(f"x = {word}\ny: end") == {"x": value, "y": "end"}


def test_a_duration_without_quotes_is_a_size() -> None:
    assert says("ping_interval: 2m") == {"ping_interval": 2_000_000}


def test_a_setting_knows_where_its_name_stands() -> None:
    settings = read("# first line\n  port: 4222\ncluster {\n\tname = x\n}").settings
    assert str(settings["port"].place) == "server.conf:2:3"
    assert isinstance(settings["cluster"].value, dict)
    assert str(settings["cluster"].value["name"].place) == "server.conf:4:2"


# ── variables ──


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 5\nx: $a", {"a": 5, "x": 5}),
        ("a: 5\nx {a: 6, y: $a}", {"a": 5, "x": {"a": 6, "y": 6}}),
        ("a: 5\nx {y {z: $a}}", {"a": 5, "x": {"y": {"z": 5}}}),
        ("a: {b: 1}\nx: $a", {"a": {"b": 1}, "x": {"b": 1}}),
        ("x: [$HOME_PORT, $NAME]", {"x": [8, "n"]}),
        ('x: "$NAME"', {"x": "$NAME"}),
        ("x: $LIST", {"x": ["a", "b"]}),
        ("x: $CHAIN", {"x": 8}),
    ],
)
def test_variables_are_looked_up_from_the_inside_out_and_then_in_the_environment(text: str, value: object) -> None:
    environment = {"HOME_PORT": "8", "NAME": "n", "LIST": "[a, b]", "CHAIN": "$HOME_PORT"}
    assert says(text, environment=environment) == value


def test_a_variable_remembers_that_it_was_used() -> None:
    settings = read("a: 5\nb: 6\nx: $a").settings
    assert (settings["a"].used, settings["b"].used) == (True, False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "x: $later\nlater: 1",
            "server.conf:1:4: variable reference for 'later' on line 1 can not be found above or in the environment",
        ),
        ("x: $A", "the variable $A is defined by itself"),
        ("x: $BAD", "environment variable BAD:1:3: Parse error on line 1: a string in double quotes does not end"),
        ("x: $TWO", "expected one value"),
    ],
)
def test_a_variable_that_cannot_be_resolved_is_an_error(text: str, reason: str) -> None:
    assert reason in refusal(text, environment={"A": "$B", "B": "$A", "BAD": ' "a', "TWO": "a\nb: c"})


# ── includes ──


def test_an_included_file_stands_for_its_settings() -> None:
    files = {"sub/users.conf": 'users = [a]\ninclude "more.conf"', "sub/more.conf": "timeout: 5"}
    text = "authorization {\n  include ./sub/users.conf\n  token: x\n}"
    assert says(text, files) == {"authorization": {"users": ["a"], "timeout": 5, "token": "x"}}


def test_an_included_file_brings_variables_and_sees_none() -> None:
    assert says("include v.conf\nx: $a", {"v.conf": "a: 1"}) == {"a": 1, "x": 1}
    assert "v.conf:1:4: variable reference for 'a'" in refusal("a: 1\ninclude v.conf", {"v.conf": "x: $a"})


@pytest.mark.parametrize(
    ("text", "files", "reason"),
    [
        (
            "include gone.conf",
            {},
            "server.conf:1:1: error parsing include file 'gone.conf', open gone.conf: No such file or directory",
        ),
        ("include a.conf", {"a.conf": "include server.conf"}, "a.conf:1:1: server.conf includes itself"),
        ("include a.conf", {"a.conf": "\n  x: ["}, "a.conf:2:6: Parse error on line 2: a [ does not end"),
        ("include [a]", {}, "expected a file name"),
        ("include 5", {}, "expected a file name"),
    ],
)
def test_an_include_that_cannot_be_read_is_an_error(text: str, files: dict[str, str], reason: str) -> None:
    assert reason in refusal(text, files)


def test_include_with_a_separator_is_a_setting() -> None:
    assert says("include: a") == {"include": "a"}


# ── what is wrong ──


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("port: 4222\nname: a b", "server.conf:2:9: Parse error on line 2: expected the end of the line, found 'b'"),
        ("port:\n4222", "server.conf:1:6: Parse error on line 1: expected a value, found a new line"),
        ("port", '"port" has no value'),
        ("x {\n y: 1", "a { does not end"),
        ("x: [1, 2", "a [ does not end"),
        ("x: [, 1]", "expected a value before ','"),
        ("x: [a b]", "expected ',' or ']', found 'b'"),
        ("x {,}", "expected a name before ','"),
        (": 4", "expected a name before ':'"),
        ("x: 'a", "server.conf:1:5: Parse error on line 1: a string in single quotes does not end"),
        ('x: "a\\q"', "there is no escape \\q"),
        ('x: "\\x4"', "two hexadecimal digits"),
        ("x: (abc)", "its ) must stand on a line of its own"),
        ("x: -a", "a string that starts with - needs quotes"),
        ("x: .5", "a number starts with a digit"),
        ("x: 10-20", "this is no date"),
        ("x: 2026-13-01T00:00:00Z", "is no date"),
        ("x: 1.5s", "needs quotes"),
        ("x: 1kbb", "no such size suffix"),
        ("x: 99999999999999999999", "64 bits"),
        ("x: " + "9" * 5000, "64 bits"),
        ("x: a\0b", "server.conf:1:5: Parse error on line 1: a NUL byte"),
        ("x: 1 }\ny: 2 }", "expected the end of the file"),
        ("{x: 1} y", "expected the end of the file"),
        ("'x", "a name in quotes does not end"),
        ("x: 'a' 'b'", "expected the end of the line"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, reason: str) -> None:
    assert reason in refusal(text)


@pytest.mark.parametrize("opening", ["x [", "x {", "[", "{a"])
def test_nesting_is_bounded(opening: str) -> None:
    deep = "x " + "[" * 100_000 if opening.endswith("[") else "x {" * 100_000
    assert f"more than {MAX_DEPTH} blocks" in refusal(deep)


def test_a_name_that_is_set_twice_counts_the_second_time_and_is_warned_about() -> None:
    document = read("port: 1\nhost: a\nport: 2")
    assert plain(document.settings) == {"port": 2, "host": "a"}
    warned = '"port" is set again here; the value at server.conf:1:1 is not used'
    assert [str(remark) for remark in document.warnings] == [f"server.conf:3:1: {warned}"]


def test_the_digest_depends_on_what_is_said_alone() -> None:
    assert read("port: 1\nhost: a").digest() == read('# x\n{"host": "a", "port": 1}').digest()
    assert read("port: 1").digest() != read("port: 2").digest()
    assert read("x: 2026-11-21T08:30:00Z").digest().startswith("sha256:")


# ── any text ──

PIECES = st.sampled_from(
    ["{", "}", "[", "]", "(", ")", "\n)", "=", ":", ",", ";", "#", "//", "'", '"', "\\", "\\x4", "$a", "$ENV", "$2a$",
     "include ", "inc.conf", "a", "b ", "12", "-", ".", "1.2.3", "2026-", "1kb", "on", "\n", "\r\n", "\t", " ", "\0", "é"]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join)))
def test_any_text_gives_values_or_a_config_error(text: str) -> None:
    try:
        document = read(text, {"inc.conf": "a: 1\n"}, {"ENV": "$a", "a": text})
    except ConfigError as error:
        assert ": " in error.message
    else:
        document.digest()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return '"' + escaped + '"'


def _write(value: object, write_map: Callable[[dict[str, object]], str]) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case int() | float():
            return repr(value)
        case str():
            return _quoted(value)
        case list():
            return "[" + ", ".join(_write(element, write_map) for element in value) + "]"
        case dict():
            return write_map(value)
        case _:
            raise AssertionError(value)


def _write_map(settings: dict[str, object]) -> str:
    return "{\n" + "".join(f"'{name}' = {_write(value, _write_map)}\n" for name, value in settings.items()) + "}"


NAMES = st.text(st.characters(exclude_characters="'\0", codec="utf-8"), min_size=1, max_size=8)
TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=12)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
SCALARS = st.booleans() | NUMBERS | TEXTS | st.floats(0.001, 1000.0).map(lambda number: round(number, 3))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


@settings(max_examples=50)
@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_what_is_written_is_what_is_read(document: dict[str, object]) -> None:
    assert says(_write_map(document)) == document
