"""The way from a command to its handler."""

from pathlib import Path

from support.iggy_service import Desk, at_desk

from headwater.iggy.dispatch import HANDLERS
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Command
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Identifier

MISSING = Identifier("missing")


def test_every_command_has_a_handler_but_updates_sends_and_polls_which_have_their_own_way() -> None:
    known = {value for value in vars(c).values() if isinstance(value, type) and issubclass(value, Command)}
    assert known - set(HANDLERS) == {
        Command,
        c.UpdateResource,  # which becomes another
        c.SendMessages,
        c.PollMessages,
        c.PollDeferred,
        c.WaitForMessages,
        c.FetchMessages,
        c.CancelDeferred,
    }


def test_what_is_not_there_is_an_empty_answer_today_and_an_error_for_the_seed(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        questions = c.GetStream(MISSING), c.GetTopic(Identifier("s"), MISSING)
        assert [await desk.do(question) for question in questions] == [None, None]
        seed = desk.client(Era.S)
        assert [await desk.refused(question, seed) for question in questions] == [
            "stream_name_not_found",
            "topic_name_not_found",
        ]
        assert await desk.refused(c.DeleteStream(MISSING)) == "stream_name_not_found"

    at_desk(tmp_path, work)
