"""The client behind a request: the header that brokers write, the client itself, or no more than the account."""

import pytest

from headwater.jetstream_advisories.requesters import requester

BLOCK = b"NATS/1.0\r\nNats-Request-Info: %b\r\n\r\n"


def test_a_client_of_another_account_is_as_its_broker_says() -> None:
    assert requester(None, BLOCK % b'{"acc":"B","rtt":7}', "A", "hub") == {"acc": "B", "rtt": 7}


@pytest.mark.parametrize("block", [b"", BLOCK % b"no JSON", BLOCK % b"[]", b"NATS/1.0\r\n\r\n"])
def test_a_request_of_the_broker_itself_names_account_and_server(block: bytes) -> None:
    assert requester(None, block, "A", "hub") == {"acc": "A", "server": "hub"}
