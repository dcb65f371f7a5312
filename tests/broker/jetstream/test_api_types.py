"""Requests and answers as JSON: nothing unknown gets in, everything that clients need comes out."""

import json

import pytest

from headwater.broker.jetstream.api_errors import api_error
from headwater.broker.jetstream.api_types import (
    ConsumerConfig,
    StreamConfig,
    StreamNamesAnswer,
    decode_request,
    encode,
    error_document,
    is_empty_request,
)
from headwater.errors import JetStreamError


@pytest.mark.parametrize("payload", [b"", b"  ", b"null", b"{}"])
def test_an_empty_request_asks_for_the_defaults(payload: bytes) -> None:
    config = decode_request(payload, StreamConfig)
    assert (config.retention, config.storage, config.discard) == ("limits", "file", "old")


def test_nulls_mean_that_a_field_was_left_out() -> None:
    config = decode_request(b'{"name": "A", "subjects": null, "metadata": null}', StreamConfig)
    assert (config.name, config.subjects, config.metadata) == ("A", [], {})


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b'{"nam": "A"}', 'invalid JSON: json: unknown field "nam"'),
        (b'{"retention": "never"}', 'invalid JSON: can not unmarshal "\\"never\\""'),
        (b'{"name": ', "invalid JSON: unexpected EOF"),
        (b"[" * 100_000, "invalid JSON"),
        (b'{"name": "\xff"}', "invalid JSON"),
    ],
)
def test_what_is_no_such_document_is_refused_with_10025(payload: bytes, reason: str) -> None:
    with pytest.raises(JetStreamError) as refused:
        decode_request(payload, StreamConfig)
    assert refused.value.err_code == 10025
    assert refused.value.description.startswith(reason)


def test_fields_that_clients_demand_are_in_an_answer_and_others_are_left_out() -> None:
    shown = json.loads(encode(ConsumerConfig(name="c")))
    assert shown["deliver_policy"] == "all"
    assert shown["ack_policy"] == "none"
    assert "filter_subject" not in shown
    assert json.loads(encode(StreamNamesAnswer(type="t", total=0, offset=0, limit=9)))["total"] == 0


def test_an_error_becomes_the_document_that_clients_read() -> None:
    assert json.loads(encode(error_document(api_error("stream_not_found")))) == {
        "code": 404,
        "err_code": 10059,
        "description": "stream not found",
    }


@pytest.mark.parametrize(
    ("payload", "empty"),
    [
        (b"", True),
        (b" \n", True),
        (b"{}", True),
        (b" { } ", True),
        (b"null", False),
        (b"[]", False),
        (b'{"a": 1}', False),
    ],
)
def test_a_request_is_empty_also_as_an_object_without_fields(payload: bytes, empty: bool) -> None:
    assert is_empty_request(payload) is empty
