"""INFO, CONNECT and LS+ between a hub and its leaf nodes."""

import pytest

from headwater.errors import RemoteProtocolError
from headwater.wire.leaf_lines import (
    LeafConnect,
    LeafInfo,
    decode_leaf_connect,
    decode_leaf_info,
    encode_leaf_connect,
    encode_leaf_info,
    leaf_interest,
)
from headwater.wire.peer_documents import SubjectLists

# Recorded from nats-server 2.15.1.
INFO = (
    b'{"server_id":"NC7","server_name":"H","version":"2.15.1","proto":3,"git_commit":"b2fd3ef","go":"go1.27.2",'
    b'"host":"127.0.0.1","port":37953,"headers":true,"auth_required":true,"max_payload":1048576,"ip":"127.0.0.1:37953",'
    b'"client_id":7,"nonce":"rEqnAJaCg0T0PDM","compression":"off","api_lvl":5,"info_on_connect":true,'
    b'"leafnode_urls":["127.0.0.1:37953"]}'
)
CONNECT = (
    b'{"version":"2.15.1","user":"la","pass":"bad","server_id":"NAP","name":"L","cluster":"L","headers":true,'
    b'"compress_mode":"off","remote_account":"$G","protocol":3}'
)


def test_info_of_a_real_hub() -> None:
    info = decode_leaf_info(INFO)
    assert (info.server_name, info.client_id, info.nonce, info.info_on_connect) == ("H", 7, "rEqnAJaCg0T0PDM", True)
    assert info.leafnode_urls == ("127.0.0.1:37953",)
    assert decode_leaf_info(encode_leaf_info(info)[5:-3]) == info


def test_permissions_of_the_second_info() -> None:
    text = b'{"import":{"allow":["down.\\u003e"],"deny":["down.no"]},"export":{"deny":["up.no"]},"connect_info":true}'
    info = decode_leaf_info(text)
    assert info.imports == SubjectLists(allow=("down.>",), deny=("down.no",))
    assert info.exports == SubjectLists(deny=("up.no",))
    assert decode_leaf_info(encode_leaf_info(info)[5:-3]) == info


def test_no_addresses_and_none_at_all_are_not_the_same() -> None:
    assert encode_leaf_info(LeafInfo()) == b"INFO {} \r\n"
    assert encode_leaf_info(LeafInfo(leafnode_urls=())) == b'INFO {"leafnode_urls":[]} \r\n'
    assert decode_leaf_info(b'{"leafnode_urls":[]}').leafnode_urls == ()
    assert decode_leaf_info(b"{}").leafnode_urls is None


def test_connect_of_a_real_leaf_node_and_its_password_is_not_shown() -> None:
    connect = decode_leaf_connect(CONNECT)
    assert (connect.user, connect.password, connect.remote_account, connect.protocol) == ("la", "bad", "$G", 3)
    assert "bad" not in repr(connect)
    assert decode_leaf_connect(encode_leaf_connect(connect)[8:-2]) == connect
    assert encode_leaf_connect(LeafConnect()) == b"CONNECT {}\r\n"


@pytest.mark.parametrize("json", [b"", b"[]", b'{"user":1}', b'{"deny_pub":"a"}'])
def test_a_connect_that_cannot_be_read_is_not_quoted(json: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="cannot be read"):
        decode_leaf_connect(json)


@pytest.mark.parametrize("json", [b"", b"[]", b'{"client_id":"x"}', b'{"import":[]}', b'{"leafnode_urls":[1]}'])
def test_an_info_that_cannot_be_read_is_an_error(json: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="cannot be read"):
        decode_leaf_info(json)


def test_interest_has_the_whole_weight_and_its_end_has_none() -> None:
    assert leaf_interest(b"a") == b"LS+ a\r\n"
    assert leaf_interest(b"a", b"", 0) == b"LS- a\r\n"
    assert leaf_interest(b"a", b"q", 3) == b"LS+ a q 3\r\n"
    assert leaf_interest(b"a", b"q", 0) == b"LS- a q\r\n"
