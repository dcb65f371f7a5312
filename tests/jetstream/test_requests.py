"""The table of requests."""

from headwater.jetstream.requests import find_call, refusal_of
from headwater.jetstream_documents.answers import StreamListAnswer
from headwater.jetstream_documents.api_errors import api_error
from headwater.server.refusals import api_verbs, unserved_routes


def test_a_request_is_found_by_its_verb_and_the_number_of_its_names() -> None:
    table = unserved_routes()
    found = find_call(table, b"$JS.API.CONSUMER.CREATE.S.c.a.b", b"inbox", b"", b"{}")
    assert found is not None
    assert (found.route.kind, found.names) == ("consumer_create_response", ["S", "c", "a", "b"])
    for subject in (b"$JS.API.STREAM.INFO", b"$JS.API.STREAM.INFO.S.T", b"$JS.API.FROB", b"$JS.API.STREAM.INFO.\xff"):
        assert find_call(table, subject, b"inbox", b"", b"") is None
    assert len(api_verbs()) == len(table) + 3


def test_a_refused_list_is_empty_and_says_why() -> None:
    call = find_call(unserved_routes(), b"$JS.API.STREAM.LIST", b"inbox", b"", b"")
    assert call is not None
    answer = refusal_of(call, api_error("not_enabled_for_account"))
    assert isinstance(answer, StreamListAnswer)
    assert answer.streams == []
    assert answer.type == "io.nats.jetstream.api.v1.stream_list_response"
