"""The client without an event loop: what it is answered, and what it says when it is refused or left alone."""

from collections.abc import Iterator

import pytest
from support.iggy_topics import IggyServer, start_iggy

from headwater.errors import IggyError, TransportError
from headwater.iggy_client.blocking import BlockingIggy
from headwater.iggy_client.requests import login_of
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import messages
from headwater.iggy_wire.classic_codec import PREFIX
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import Consumer, Identifier, PollingStrategy
from headwater.net.blocking import deadline_after


@pytest.fixture(scope="module")
def iggy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IggyServer]:
    with start_iggy(tmp_path_factory.mktemp("iggy")) as running:
        yield running


def test_what_is_sent_is_polled_and_answers_come_in_the_order_of_the_questions(iggy: IggyServer) -> None:
    iggy.fill("s", "t", [[Message(b"%d" % number) for number in range(10)], []])
    with iggy.client() as client:
        view = client.topic("s", "t")
        assert view is not None
        assert [(part.id, part.messages) for part in view.parts] == [(0, 10), (1, 0)]
        for start in (0, 5):
            where = Identifier("s"), Identifier("t")
            client.ask(c.PollMessages(Consumer.single(), *where, 0, PollingStrategy.offset(start), 5))
        found = []
        for _ in range(2):
            reply = client.answer(deadline_after(20))
            body = bytes(client.buffer[reply.start + PREFIX.size : reply.end])
            client.consume(reply)
            found += [message.payload for message in messages(body)]
        assert found == [b"%d" % number for number in range(10)]
        assert client.send("s", "t", 1, [Message(b"x")]).base_offset == 0


def test_a_topic_that_is_not_there_is_none_and_a_refusal_has_its_number(iggy: IggyServer) -> None:
    with iggy.client() as client:
        assert client.topic("s", "none") is None
        with pytest.raises(IggyError) as refused:
            client.send("none", "none", 0, [Message(b"x")])
        assert refused.value.number
        assert client.execute(c.Ping()) is None


def test_a_wrong_password_is_refused(iggy: IggyServer) -> None:
    with pytest.raises(IggyError, match="credentials"):
        BlockingIggy.connect("127.0.0.1", iggy.port, login_of("iggy", "wrong", ""), 20.0)


def test_a_server_that_is_not_there_is_a_transport_error() -> None:
    with pytest.raises(TransportError):
        BlockingIggy.connect("127.0.0.1", 1, login_of("iggy", "iggy", ""), 5.0)
