"""Documents as a server reads them: nothing unknown gets in, at no level, and absent fields hold what Go puts there."""

import msgspec
import pytest

from headwater.errors import JetStreamError
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.requests import CreateConsumerRequest, DirectGetRequest
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_documents.strict_reading import decode_request, decode_stored, is_empty_request


@pytest.mark.parametrize("payload", [b"", b"  ", b"null", b"{}"])
def test_an_empty_request_asks_for_the_defaults(payload: bytes) -> None:
    config = decode_request(payload, StreamConfig)
    assert (config.retention, config.storage, config.discard) == ("limits", "file", "old")


def test_nulls_mean_that_a_field_was_left_out() -> None:
    config = decode_request(b'{"name": "A", "subjects": null, "metadata": null}', StreamConfig)
    assert (config.name, config.subjects, config.metadata) == ("A", [], None)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b'{"nam": "A"}', 'invalid JSON: json: unknown field "nam"'),
        (b'{"republish": {"src": "a", "to": "b"}}', 'invalid JSON: json: unknown field "to"'),
        (b'{"sources": [{"name": "s", "external": {"port": 1}}]}', 'invalid JSON: json: unknown field "port"'),
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


def test_a_consumer_that_names_no_ack_policy_has_none_for_a_server_and_explicit_for_a_client() -> None:
    assert decode_request(b'{"stream_name": "S", "config": {}}', CreateConsumerRequest).config.ack_policy == "none"
    assert decode_request(b"", CreateConsumerRequest).config.ack_policy == "none"
    assert ConsumerConfig().ack_policy == "explicit"


def test_a_direct_get_passes_over_unknown_fields_as_nats_server_does() -> None:
    assert decode_request(b'{"seq": 3, "later": {"seq": 1}}', DirectGetRequest).seq == 3


def test_a_stored_setting_that_is_not_known_is_refused_for_nobody_would_honour_it() -> None:
    assert decode_stored(b'{"name": "S", "max_msgs": 3}', StreamConfig).max_msgs == 3
    with pytest.raises(msgspec.ValidationError, match="unknown field `encrypted`"):
        decode_stored(b'{"name": "S", "encrypted": true}', StreamConfig)
