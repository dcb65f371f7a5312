"""INFO and CONNECT are read and written as by nats-server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import RemoteProtocolError
from headwater.wire.handshake import (
    ConnectOptions,
    ServerInfo,
    decode_connect,
    decode_info,
    encode_connect,
    encode_info,
)


def test_an_info_round_trips() -> None:
    info = ServerInfo(server_id="N1", version="2.15.1", headers=True, max_payload=1 << 20, connect_urls=("a:1", "b:2"))
    op = encode_info(info)
    assert op.startswith(b"INFO {")
    assert op.endswith(b"} \r\n")
    assert decode_info(op[5:]) == info


def test_a_connect_round_trips_without_absent_credentials() -> None:
    options = ConnectOptions(verbose=False, pedantic=False, headers=True, user="u", password="p", protocol=1)
    op = encode_connect(options)
    assert b'"pass":"p"' in op
    assert b"jwt" not in op
    assert decode_connect(op[8:-2]) == options


@pytest.mark.parametrize("document", [b"{}", b"null", b" null "])
def test_verbose_and_pedantic_default_to_true(document: bytes) -> None:
    options = decode_connect(document)
    assert (options.verbose, options.pedantic, options.echo, options.headers) == (True, True, True, False)


def test_unknown_fields_are_ignored_and_the_last_of_duplicates_wins() -> None:
    assert decode_connect(b'{"frob":[[[]]],"echo":true,"echo":false}').echo is False


@pytest.mark.parametrize("document", [b"", b"[]", b'"x"', b"{", b'{"verbose":1}', b'{"echo":NaN}', b"{} {}"])
def test_a_connect_that_cannot_be_read_is_the_peers_fault(document: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_connect(document)


def test_a_password_is_never_quoted_in_an_error() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        decode_connect(b'{"pass":"s3cret","verbose":3}')
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(caught.value.value)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_as_a_protocol_error(document: bytes) -> None:
    for decode in (decode_connect, decode_info):
        try:
            decode(document)
        except RemoteProtocolError as error:
            assert error.fault == "peer"


def test_half_a_surrogate_pair_does_not_get_in() -> None:
    options = decode_connect(b'{"name":"\\ud800x","pass":"\\udfff"}')
    assert (options.name, options.password) == ("?x", "?")
