"""Requests as a client writes them: nothing at its default is sent, and nothing that is set is left out."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.sparse_writing import encode_request
from headwater.jetstream_documents.streams import ConsumerLimits, ExternalStream, Republish, StreamConfig, StreamSource


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (None, b""),
        (StreamConfig(name="S", subjects=["a"]), b'{"name":"S","subjects":["a"]}'),
        (ConsumerConfig(), b'{"ack_policy":"explicit"}'),
        (ConsumerConfig(opt_start_seq=3, ack_policy="none"), b'{"opt_start_seq":3,"ack_policy":"none"}'),
        ({"config": ConsumerConfig(ack_wait=5)}, b'{"config":{"ack_policy":"explicit","ack_wait":5}}'),
        (
            StreamConfig(name="S", mirror=StreamSource(name="M", external=ExternalStream(api="$JS.hub.API"))),
            b'{"name":"S","mirror":{"name":"M","external":{"api":"$JS.hub.API"}}}',
        ),
        (StreamConfig(name="S", republish=Republish(dest="")), b'{"name":"S","republish":{"dest":""}}'),
        (StreamConfig(name="S", consumer_limits=ConsumerLimits()), b'{"name":"S","consumer_limits":{}}'),
    ],
)  # fmt: skip
def test_defaults_are_left_out_but_for_the_ack_policy_whose_default_the_server_does_not_share(
    body: object, expected: bytes
) -> None:
    assert encode_request(body) == expected


@given(
    st.builds(
        StreamConfig,
        name=st.text(max_size=3),
        subjects=st.lists(st.text(max_size=3), max_size=2),
        max_age=st.integers(0, 9),
        retention=st.sampled_from(["limits", "interest", "workqueue"]),
        sources=st.none() | st.lists(st.builds(StreamSource, name=st.text(max_size=2)), max_size=2),
        metadata=st.none() | st.dictionaries(st.text(max_size=2), st.text(max_size=2), max_size=2),
        sealed=st.booleans(),
    )
)
def test_what_was_sent_is_what_was_meant(config: StreamConfig) -> None:
    sent = encode_request(config)
    assert msgspec.json.decode(sent, type=StreamConfig) == config
    assert set(json.loads(sent)) <= {"name", "subjects", "max_age", "retention", "sources", "metadata", "sealed"}
