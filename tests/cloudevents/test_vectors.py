"""The shared CloudEvents vectors, each a test by its name, in the lenient form and, where one is stated, the strict."""

import base64
import json
from pathlib import Path
from typing import Any, assert_never

import msgspec
import pytest

from headwater.cloudevents import (
    AttributeType,
    CloudEvent,
    CloudEventError,
    DataKind,
    NATSMessage,
    canonical_string,
    content_mode,
    decode_header_value,
    encode_header_value,
    from_json,
    from_nats,
    is_attribute_name,
    to_binary,
    to_json,
)

Vector = dict[str, Any]
VECTORS: list[Vector] = json.loads((Path(__file__).parents[1] / "vectors" / "cloudevents.json").read_bytes())["vectors"]


def of_kind(kind: str) -> list[Any]:
    """(vector, strict) for the lenient form, and for the strict one if the vector states it."""
    params = []
    for v in VECTORS:
        if v["kind"] == kind:
            params.append(pytest.param(v, False, id=v["name"]))
            if "strict_expected" in v:
                params.append(pytest.param(v, True, id=v["name"] + "-strict"))
    return params


def expected(vector: Vector, strict: bool) -> Vector:
    chosen: Vector = vector["strict_expected" if strict else "expected"]
    return chosen


def refused(error: CloudEventError, wanted: Vector) -> Vector:
    """The error as a vector states one: `attribute` only where the vector has it."""
    return {"error": error.rule} | ({"attribute": error.attribute} if "attribute" in wanted else {})


def native(value: Any) -> Any:
    """A value of an event's attributes in a vector, as a program has it."""
    if isinstance(value, dict):
        return base64.b64decode(value["base64"]) if "base64" in value else value["value"]
    return value


def event_of(stated: Vector) -> CloudEvent:
    data: Any = None
    match stated["data"]:
        case {"kind": "bytes", "base64": text}:
            data = base64.b64decode(text)
        case {"kind": "text", "value": data}:
            pass
        case {"kind": "json", "value": value}:
            data = msgspec.Raw(json.dumps(value).encode())
        case _:
            assert stated["data"] is None
    return CloudEvent.from_attributes({name: native(v) for name, v in stated["attributes"].items()}, data)


def stated_by(event: CloudEvent) -> Vector:
    """An event as a vector states one."""
    data: Any = None
    match event.kind:
        case DataKind.BINARY:
            data = {"kind": "bytes", "base64": base64.b64encode(event.data).decode()}
        case DataKind.TEXT:
            data = {"kind": "text", "value": event.data}
        case DataKind.JSON:
            data = {"kind": "json", "value": event.data}
        case DataKind.ABSENT:
            pass
        case _:
            assert_never(event.kind)
    return {"attributes": dict(event.attributes), "data": data}


def message_of(vector: Vector) -> NATSMessage:
    payload = bytes.fromhex(vector["payload_hex"]) if "payload_hex" in vector else vector["payload_utf8"].encode()
    return NATSMessage([(name, value) for name, value in vector["headers"]], payload)


def check_event(vector: Vector, strict: bool, read: Any) -> None:
    wanted = expected(vector, strict)
    try:
        got = stated_by(read())
    except CloudEventError as error:
        assert refused(error, wanted) == wanted
    else:
        assert {key: got[key] for key in wanted} == wanted


def test_every_kind_of_vector_has_its_test() -> None:
    tested = {"value_encode", "value_decode", "canonical", "attribute_name", "mode"}
    tested |= {"binary_encode", "binary_decode", "json_encode", "json_decode"}
    assert {vector["kind"] for vector in VECTORS} == tested


@pytest.mark.parametrize(("vector", "strict"), of_kind("value_encode"))
def test_string_becomes_a_header_value(vector: Vector, strict: bool) -> None:
    assert {"wire": encode_header_value(vector["value"])} == expected(vector, strict)


@pytest.mark.parametrize(("vector", "strict"), of_kind("value_decode"))
def test_header_value_becomes_a_string(vector: Vector, strict: bool) -> None:
    wanted = expected(vector, strict)
    try:
        assert {"value": decode_header_value(vector["wire"], strict)} == wanted
    except CloudEventError as error:
        assert refused(error, wanted) == wanted


@pytest.mark.parametrize(("vector", "strict"), of_kind("canonical"))
def test_typed_value_becomes_its_canonical_string(vector: Vector, strict: bool) -> None:
    wanted = expected(vector, strict)
    try:
        text = canonical_string("x", native(vector["native"]), AttributeType(vector["type"]))
    except CloudEventError as error:
        assert refused(error, wanted) == wanted
    else:
        assert {"string": text} == wanted


@pytest.mark.parametrize(("vector", "strict"), of_kind("attribute_name"))
def test_attribute_name_is_judged(vector: Vector, strict: bool) -> None:
    assert {"valid": is_attribute_name(vector["attribute"])} == expected(vector, strict)


@pytest.mark.parametrize(("vector", "strict"), of_kind("mode"))
def test_content_mode_is_told(vector: Vector, strict: bool) -> None:
    wanted = expected(vector, strict)
    try:
        assert {"mode": content_mode(message_of(vector), strict)} == wanted
    except CloudEventError as error:
        assert refused(error, wanted) == wanted


@pytest.mark.parametrize(("vector", "strict"), of_kind("binary_encode"))
def test_event_becomes_a_binary_message(vector: Vector, strict: bool) -> None:
    wanted = expected(vector, strict)
    try:
        headers, payload = to_binary(event_of(vector["event"]))
    except CloudEventError as error:
        assert refused(error, wanted) == wanted
        return
    assert sorted(map(list, headers.multi_items())) == sorted(wanted["headers"])  # type: ignore[union-attr]
    wire = bytes.fromhex(wanted["payload_hex"])
    if vector["event"]["data"] is not None and vector["event"]["data"]["kind"] == "json":
        assert json.loads(payload) == json.loads(wire)
    else:
        assert payload == wire


@pytest.mark.parametrize(("vector", "strict"), of_kind("binary_decode"))
def test_binary_message_becomes_an_event(vector: Vector, strict: bool) -> None:
    check_event(vector, strict, lambda: from_nats(message_of(vector), strict))


@pytest.mark.parametrize(("vector", "strict"), of_kind("json_decode"))
def test_json_becomes_an_event(vector: Vector, strict: bool) -> None:
    check_event(vector, strict, lambda: from_json(bytes.fromhex(vector["payload_hex"]), strict))


@pytest.mark.parametrize(("vector", "strict"), of_kind("json_encode"))
def test_event_becomes_json(vector: Vector, strict: bool) -> None:
    wanted = expected(vector, strict)
    try:
        assert {"json": json.loads(to_json(event_of(vector["event"])))} == wanted
    except CloudEventError as error:
        assert refused(error, wanted) == wanted
