"""JSON objects are decoded as leniently as by Go, into the fields of a record."""

import pytest

from headwater.model.record import Record
from headwater.wire.json_fields import differing, encode_fields, kinds_of, read_fields, wire_names

NAMES = {"name": "name", "pass": "password", "urls": "urls", "port": "port", "rules": "rules"}
DEFAULTS: dict[str, object] = {"name": "", "password": None, "urls": (), "port": 0, "rules": {}}
KINDS = kinds_of(NAMES, DEFAULTS)


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        (b'{"NAME":"a","Pass":"p","unknown":[[1]]}', {"name": "a", "password": "p"}),
        (b'{"name":null,"urls":["a","b"],"port":7}', {"urls": ("a", "b"), "port": 7}),
        (b'{"rules":{"deny":["x"]}}', {"rules": {"deny": ["x"]}}),
        (b'{"name":"\xff"}', {"name": "\ufffd"}),
        (b'{"name":"\\ud800","urls":["\\ud800"]}', {"name": "?", "urls": ("?",)}),
        (b'{"unknown":' + b"[" * 5_000 + b"]" * 5_000 + b',"port":1}', {"port": 1}),
    ],
)
def test_known_fields_are_read_as_leniently_as_go_does(document: bytes, fields: dict[str, object]) -> None:
    assert read_fields(document, KINDS) == fields


@pytest.mark.parametrize(
    "document",
    [
        b"null",
        b"[]",
        b"{",
        b'{"name":1}',
        b'{"port":true}',
        b'{"port":"7"}',
        b'{"urls":[1]}',
        b'{"urls":"a"}',
        b'{"x":NaN}',
    ],
)
def test_a_document_or_a_value_of_another_kind_is_refused(document: bytes) -> None:
    with pytest.raises(ValueError):
        read_fields(document, KINDS)


def test_an_object_is_written_without_blanks_and_in_utf_8() -> None:
    assert encode_fields({"a": [1, True], "é": "ü"}) == '{"a":[1,true],"é":"ü"}'.encode()


def test_default_values_are_written_only_if_required_and_under_their_wire_names() -> None:
    class Login(Record):
        password: str = ""
        verbose: bool = False
        port: int = 0

    names = wire_names(Login._defaults, {"password": "pass"})
    assert differing(Login(password="s"), names) == {"pass": "s"}
    assert differing(Login(port=7), names, always=("verbose",)) == {"verbose": False, "port": 7}
