"""Reading a block by a table of fields, and the readers of single values."""

from typing import Any

import pytest

from headwater.server.config import fields
from headwater.server.config.document import Map, Place, Setting
from headwater.server.config.fields import Block, Reading, done, ignored, refused

BLOCK = Block(
    "x",
    (
        done("size bytes", fields.number, "a number", to="octets"),
        done("name", fields.text, "a string"),
        ignored("old", "it is old"),
        refused("evil", "it is evil"),
    ),
)


def setting(value: Any, used: bool = False) -> Setting:
    return Setting(value, Place("f", 1, 1), used)


def no_file(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory", path)


def read(settings: Map) -> tuple[dict[str, Any], list[str], list[str]]:
    reading = Reading(no_file)
    found = reading.settings(settings, BLOCK)
    return found, [one.text for one in reading.errors], [one.text for one in reading.warnings]


def test_values_go_by_their_keyword_whatever_the_name_was() -> None:
    assert read({"bytes": setting(5), "NAME": setting("x")}) == ({"octets": 5, "name": "x"}, [], [])


def test_all_that_is_wrong_is_gathered() -> None:
    found, errors, warnings = read(
        {
            "size": setting("x"),
            "nam": setting("y"),
            "evil": setting(True),
            "old": setting(1),
            "var": setting(1, used=True),
        }
    )
    assert found == {}
    assert errors == [
        '"size" must be a number, not a string',
        'unknown field "nam"; did you mean "name"?',
        '"evil" is a field of nats-server that Headwater does not do: it is evil',
    ]
    assert warnings == ['"old" changes nothing here: it is old']


def test_what_is_switched_off_may_be_named() -> None:
    assert read({"evil": setting(False), "old": setting(False)}) == ({}, [], [])


@pytest.mark.parametrize(
    ("reader", "value", "result"),
    [
        (fields.texts, "a", ("a",)),
        (fields.texts, [setting("a"), setting("b")], ("a", "b")),
        (fields.seconds, "1m30s", 90.0),
        (fields.amount_of_seconds, 2, 2.0),
        (fields.amount_of_seconds, 1.5, 1.5),
        (fields.amount_of_seconds, "250ms", 0.25),
        (fields.storage_size, 7, 7),
        (fields.storage_size, "2K", 2048),
        (fields.storage_size, "", 0),
        (fields.address, 4222, ("", 4222)),
        (fields.address, "h:1", ("h", 1)),
        (fields.address, ":-1", ("", -1)),
        (fields.address, "[::1]:1", ("::1", 1)),
        (fields.strings, {"a": setting("b")}, {"a": "b"}),
    ],
)
def test_readers(reader: fields.Read, value: Any, result: object) -> None:
    assert reader(Reading(no_file), setting(value)) == result


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        (fields.switch, 1),
        (fields.number, True),
        (fields.number, 1.5),
        (fields.small_number, 1 << 31),
        (fields.port, 70_000),
        (fields.name, "a b"),
        (fields.time_text, 5),
        (fields.storage_size, "5X"),
        (fields.storage_size, "٢K"),
        (fields.address, "h"),
        (fields.address, "h:x"),
        (fields.address, "::1:5"),
        (fields.address, "h:99999"),
        (fields.address, True),
        (fields.mapping, "x"),
    ],
)
def test_readers_refuse_with_a_sentence(reader: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        reader(setting(value)) if reader is fields.mapping else reader(Reading(no_file), setting(value))
