"""What a copy asks of its origin, word for word as nats-server 2.15 asks it."""

import json

import pytest

from headwater.jetstream_documents.streams import ExternalStream, SourceConsumer, StreamSource, SubjectTransform
from headwater.jetstream_sources.origin import CopyingStream, Origin, read_answer
from headwater.jetstream_sources.stamp import Position

MIR = CopyingStream("MIR", "A", "leafy")
HUB = ExternalStream(api="$JS.hub.API", deliver="del.leafy")


def test_a_mirror_across_a_leaf_node_asks_as_the_real_one_does() -> None:
    request = Origin(StreamSource(name="ORD", external=HUB), MIR, is_mirror=True).request(None, "q1Df7QF8")
    assert request.subject == b"$JS.hub.API.CONSUMER.CREATE.ORD"
    assert request.header_block == b"NATS/1.0\r\nNats-Required-Api-Level: 4\r\n\r\n"
    sent = json.loads(request.payload)
    assert sent["stream_name"] == "ORD"
    assert sent["config"] == {
        "name": "JS_MIRROR_AjCIcA3h",  # the transcript's: of the stream, its account and its domain
        "deliver_policy": "all",
        "ack_policy": "none",
        "ack_wait": 79_200_000_000_000,
        "max_deliver": 1,
        "replay_policy": "instant",
        "flow_control": True,
        "deliver_subject": "del.leafy.M.q1Df7QF8",
        "idle_heartbeat": 1_000_000_000,
        "inactive_threshold": 10_000_000_000,
        "num_replicas": 0,
        "direct": True,
        "sourcing": True,
        "metadata": {"_nats.mirror.acc": "A", "_nats.mirror.domain": "leafy", "_nats.mirror.stream": "MIR"},
    }


def test_a_source_names_what_it_has_and_whose_it_is() -> None:
    origin = Origin(StreamSource(name="ORD", filter_subject="ord.5"), MIR, is_mirror=False)
    request = origin.request(Position(41, "uypNsQ8V"), "x")
    assert request.subject.startswith(b"$JS.API.CONSUMER.CREATE.ORD.JS_SRC_")
    assert request.subject.endswith(b".ord.5")
    assert request.header_block == b"NATS/1.0\r\nNats-Required-Api-Level: 5\r\nNats-Stream-Identity: uypNsQ8V\r\n\r\n"
    config = json.loads(request.payload)["config"]
    assert (config["deliver_policy"], config["opt_start_seq"]) == ("by_start_sequence", 42)
    assert config["deliver_subject"] == "$JS.S.x"


@pytest.mark.parametrize(
    ("source", "sent"),
    [
        (StreamSource(name="O", opt_start_seq=5), {"deliver_policy": "by_start_sequence", "opt_start_seq": 5}),
        (
            StreamSource(name="O", opt_start_time="2026-01-01T00:00:00Z"),
            {"deliver_policy": "by_start_time", "opt_start_time": "2026-01-01T00:00:00Z"},
        ),
        (
            StreamSource(
                name="O", subject_transforms=[SubjectTransform(src="a", dest="b"), SubjectTransform(src="c", dest="d")]
            ),
            {"filter_subjects": ["a", "c"]},
        ),
        (
            StreamSource(name="O", subject_transforms=[SubjectTransform(src="a.*", dest="b.$1")]),
            {"filter_subject": "a.*"},
        ),
    ],
)
def test_where_it_begins_and_what_it_wants(source: StreamSource, sent: dict[str, object]) -> None:
    config = json.loads(Origin(source, MIR, is_mirror=True).request(None, "x").payload)["config"]
    assert sent.items() <= config.items()


def test_two_sources_of_one_stream_have_two_consumers() -> None:
    first = Origin(StreamSource(name="O", filter_subject="a"), MIR, is_mirror=False)
    second = Origin(StreamSource(name="O", filter_subject="b"), MIR, is_mirror=False, twice=True)
    assert first.deletion().subject != second.deletion().subject


def test_a_consumer_that_a_user_has_made_is_set_back() -> None:
    consumer = SourceConsumer(name="dur", deliver_subject="dd")
    origin = Origin(StreamSource(name="Q", consumer=consumer), MIR, is_mirror=True)
    request = origin.request(None, "x")
    assert (request.subject, request.payload) == (b"$JS.API.CONSUMER.RESET.Q.dur", b"")
    assert origin.deliver_subject("x") == "dd"


def test_an_older_server_is_asked_in_its_own_words() -> None:
    request = Origin(StreamSource(name="O"), MIR, is_mirror=True).request(None, "fresh", plain=True)
    config = json.loads(request.payload)["config"]
    assert request.header_block == b""
    assert "sourcing" not in config
    assert config["name"].endswith("_fresh")


def test_an_answer_names_a_consumer_or_an_error_and_anything_else_is_none() -> None:
    error = b'{"type":"t","error":{"code":404,"err_code":10059,"description":"stream not found"}}'
    refused = read_answer(b"", error)
    assert refused is not None
    assert refused.error is not None
    assert refused.error.err_code == 10059
    made = (
        b'{"type":"t","stream_name":"O","name":"c","config":{"deliver_subject":"d","durable_name":"c"},"num_pending":7,'
        b'"delivered":{"consumer_seq":0,"stream_seq":41}}'
    )
    answered = read_answer(b"NATS/1.0\r\nNats-Stream-Identity: abc\r\n\r\n", made)
    assert answered is not None
    assert (answered.consumer, answered.pending, answered.identity, answered.is_durable) == ("c", 7, "abc", True)
    assert answered.delivered == 41
    assert read_answer(b"", b"no JSON") is None
    assert read_answer(b"", b'{"type":"t"}') is None
