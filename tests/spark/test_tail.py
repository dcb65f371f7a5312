"""One stream of a query: what is known of it, and what is asked anew."""

import pytest
from support.nats_server import NatsServer
from support.stream_filling import fill, numbered

from headwater.spark.options import parse_options
from headwater.spark.tail import StreamTail

pytestmark = pytest.mark.interop


def test_what_was_seen_is_not_asked_again_until_it_is_read(nats_server: NatsServer) -> None:
    fill(nats_server.url, "TAIL", ["tail.*"], numbered("tail", 5))
    tail = StreamTail(parse_options({"servers": nats_server.url, "stream": "TAIL", "startingOffsets": "earliest"}))
    assert tail.end() is None
    begin = tail.initial()
    before = tail._planner.requests
    assert tail.knows_beyond(begin)
    assert (tail.backlog(begin), tail.accepted(begin)) == (5, begin)
    assert tail.initial() == begin
    assert tail._planner.requests == before
    end = tail.end()
    assert end is not None
    assert not tail.knows_beyond(end)
    assert not tail.is_unknown(end)
    fill(nats_server.url, "TAIL", ["tail.*"], numbered("tail", 2, 5))
    tail.wait_beyond(end)
    assert tail.backlog(end) == 2
    tail.fix_target()
    fill(nats_server.url, "TAIL", ["tail.*"], numbered("tail", 2, 7))
    tail.observe()
    assert tail.backlog(end) == 2
    tail.close()
