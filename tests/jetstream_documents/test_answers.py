"""Answers as JSON, byte for byte: what clients demand, in nats-server's order, and nothing that they do not expect."""

import json

from headwater.jetstream_documents.answers import (
    ConsumerListAnswer,
    StreamInfoAnswer,
    StreamListAnswer,
    StreamNamesAnswer,
    encode,
    error_document,
)
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_documents.consumers import ConsumerConfig, ConsumerInfo
from headwater.jetstream_documents.streams import ClusterInfo, ConsumerLimits, StreamConfig, StreamInfo, StreamState

CONFIG = (
    b'{"name":"S","subjects":["s.>"],"retention":"limits","max_consumers":-1,"max_msgs":-1,"max_bytes":-1,"max_age":0,'
    b'"max_msgs_per_subject":-1,"max_msg_size":-1,"discard":"old","storage":"file","num_replicas":1,"compression":"none",'
    b'"allow_direct":false,"mirror_direct":false,"sealed":false,"deny_delete":false,"deny_purge":false,'
    b'"allow_rollup_hdrs":false,"consumer_limits":{},"allow_msg_ttl":false}'
)
STATE = (
    b'{"messages":0,"bytes":0,"first_seq":0,"first_ts":"0001-01-01T00:00:00Z","last_seq":0,'
    b'"last_ts":"0001-01-01T00:00:00Z","consumer_count":0}'
)


def stream() -> StreamConfig:
    return StreamConfig(name="S", subjects=["s.>"], consumer_limits=ConsumerLimits())


def test_a_stream_is_shown_as_nats_server_shows_it() -> None:
    cluster = ClusterInfo(leader="one")
    answer = StreamInfoAnswer(type="t", config=stream(), created="then", state=StreamState(), cluster=cluster, ts="now")
    expected = (
        b'{"type":"t","total":0,"offset":0,"limit":0,"config":%b,"created":"then","state":%b,"cluster":%b,"ts":"now"}'
    )
    assert encode(answer) == expected % (CONFIG, STATE, b'{"leader":"one"}')
    listed = StreamListAnswer(type="t", streams=[StreamInfo(config=stream(), created="c", state=StreamState(), ts="t")])
    expected = (
        b'{"type":"t","total":0,"offset":0,"limit":0,"streams":[{"config":%b,"created":"c","state":%b,"ts":"t"}]}'
    )
    assert encode(listed) == expected % (CONFIG, STATE)


def test_a_consumer_is_shown_as_nats_server_shows_it() -> None:
    info = ConsumerInfo(stream_name="S", name="c", created="then", config=ConsumerConfig(name="c"), ts="now")
    answer = ConsumerListAnswer(type="t", consumers=[info])
    config = b'{"name":"c","deliver_policy":"all","ack_policy":"explicit","replay_policy":"instant","num_replicas":0}'
    place = b'{"consumer_seq":0,"stream_seq":0}'
    counts = b'"num_ack_pending":0,"num_redelivered":0,"num_waiting":0,"num_pending":0'
    shown = b'{"stream_name":"S","name":"c","created":"then","config":%b,"delivered":%b,"ack_floor":%b,%b,"ts":"now"}'
    consumers = shown % (config, place, place, counts)
    assert encode(answer) == b'{"type":"t","total":0,"offset":0,"limit":0,"consumers":[%b]}' % consumers


def test_the_counts_of_a_page_are_shown_when_they_are_zero() -> None:
    assert json.loads(encode(StreamNamesAnswer(type="t", total=0, offset=0, limit=9)))["total"] == 0


def test_an_error_becomes_the_document_that_clients_read() -> None:
    assert json.loads(encode(error_document(api_error("stream_not_found")))) == {
        "code": 404,
        "err_code": 10059,
        "description": "stream not found",
    }
