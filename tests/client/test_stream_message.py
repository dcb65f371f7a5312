"""Where a delivered message stands, read from its acknowledgement subject."""

import inspect
from types import FrameType
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.both_servers import Serve
from support.scripted_server import finish

import headwater
from headwater.client.stream_message import Metadata, StreamMessage, parse_metadata
from headwater.errors import LocalProtocolError

ACK = "$JS.ACK.S.C.1.10.5.1700000000000000000.3"


def test_metadata_of_both_forms_of_the_ack_subject() -> None:
    plain = Metadata("S", "C", 1, 10, 5, 1700000000000000000, 3)
    assert parse_metadata(ACK) == plain
    tail = ACK.removeprefix("$JS.ACK.")
    assert parse_metadata(f"$JS.ACK._.HASH.{tail}") == plain
    assert parse_metadata(f"$JS.ACK._.HASH.{tail}.random") == plain
    assert parse_metadata(f"$JS.ACK.hub.HASH.{tail}").domain == "hub"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "r",
        "$JS.ACK",
        ACK + ".x",
        ACK.replace("10", "ten"),
        ACK.replace("10", "٣"),
        ACK.replace("$JS", "$JX"),
        ACK[:-2],
    ],
)
def test_what_is_no_ack_subject_is_refused(reply: str) -> None:
    with pytest.raises(LocalProtocolError, match="no acknowledgement subject"):
        parse_metadata(reply)


@given(st.text(alphabet="$JSACK.0123456789_x", max_size=80))
def test_a_reply_subject_of_any_kind_gives_metadata_or_a_clear_error(reply: str) -> None:
    try:
        parse_metadata(reply)
    except LocalProtocolError:
        pass


@pytest.mark.parametrize("settle", ["ack", "nak", "term", "in_progress"])
def test_a_forgotten_await_warns_with_its_line_and_is_found_by_type_checkers(settle: str) -> None:
    message = StreamMessage(cast(Any, None), headwater.Message("a", b"", ACK))
    method: Any = getattr(message, settle)
    with pytest.warns(RuntimeWarning, match=rf"coroutine 'StreamMessage\.{settle}' was never awaited") as warned:
        method()
        line = cast(FrameType, inspect.currentframe()).f_lineno
    assert (warned[0].filename, warned[0].lineno) == (__file__, line - 1)
    with pytest.warns(RuntimeWarning):
        message.ack()  # type: ignore[unused-coroutine] # mypy names it; an ignore that ignores nothing is an error


def test_what_programs_print_says_where_it_stands() -> None:
    client: Any = object()
    message = StreamMessage(
        client, headwater.Message("orders.eu", b"12", "$JS.ACK.ORDERS.C.2.7.9.1700000000000000000.0")
    )
    assert repr(message) == "<StreamMessage ORDERS:7 to C, delivery 2 'orders.eu' 2 bytes>"
    assert repr(StreamMessage(client, headwater.Message("a", b"x"))) == "<StreamMessage <Message 'a' data=b'x'>>"


def test_what_a_client_makes_names_itself(serve: Serve) -> None:
    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            assert repr(client) == f"<Client connected to {url}>"
            assert repr(client.jetstream()) == f"<JetStream $JS.API of <Client connected to {url}>>"
            assert repr(client.jetstream().pull_consumer("S", "C")) == "<PullConsumer 'C' of 'S'>"
            async with await client.subscribe("a.*", "workers") as subscription:
                assert repr(subscription) == "<Subscription 1 to 'a.*' in 'workers', 0 waiting>"
            assert subscription.ended
            assert repr(subscription).endswith(", ended>")
        assert repr(client) == "<Client closed>"

    finish(main())
