"""Answers of JetStream as a client reads them: nothing strange in an answer is fatal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.client.jetstream_types import PubAck, StreamInfo, decode_answer
from headwater.errors import HeadwaterError, JetStreamError, RemoteProtocolError


def test_an_answer_with_fields_of_the_future_is_read() -> None:
    ack = decode_answer(b'{"stream":"S","seq":3,"new":{"a":[1]}}', PubAck, "it")
    assert (ack.stream, ack.seq, ack.duplicate) == ("S", 3, False)


def test_an_error_answer_has_the_servers_numbers() -> None:
    answer = b'{"type":"t","error":{"code":404,"err_code":10059,"description":"stream not found"}}'
    with pytest.raises(JetStreamError, match=r"stream not found \[404/10059\]") as caught:
        decode_answer(answer, StreamInfo, "STREAM.INFO.S")
    assert (caught.value.code, caught.value.err_code, caught.value.description) == (404, 10059, "stream not found")


def test_the_word_error_in_a_value_is_no_error() -> None:
    answer = b'{"config":{"name":"S","description":"\\"error\\""},"state":{},"error":null}'
    assert decode_answer(answer, StreamInfo, "it").config.description == '"error"'


@pytest.mark.parametrize(
    "answer", [b"", b"{}", b"[]", b"null", b'{"error":7}', b'{"stream":1}', b"\xff", b"[" * 100_000]
)
def test_what_is_no_answer_is_the_peers_fault_and_names_what_was_asked(answer: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="the answer to STREAM_X"):
        decode_answer(answer, PubAck, "STREAM_X")


@given(st.binary(max_size=60))
def test_any_bytes_are_an_answer_or_an_error_of_ours(answer: bytes) -> None:
    try:
        decode_answer(answer, PubAck, "it")
    except HeadwaterError:
        pass
