"""A client's talk without a transport: one answer for each request, in the form of the era, whatever goes wrong."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.iggy_service import Desk, S, T, at_desk

from headwater.errors import IggyError
from headwater.iggy import dispatch
from headwater.iggy.clients import Client
from headwater.iggy.conversation import Conversation
from headwater.iggy_wire import classic_codec, classic_frames, command_codec, eras, reply_codec, vsr_frames
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import messages, of_messages
from headwater.iggy_wire.commands import Code, Command, Message
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Consumer, Identifier, Partitioning, PollingStrategy
from headwater.net.piece_queue import Piece, as_bytes
from headwater.streams.segment import LARGE_BATCH

ADDRESS = c.SendMessages(S, T, Partitioning.partition(0), 1)
POLL = c.PollMessages(Consumer.single(), S, T, 0, PollingStrategy.first(), 100)


class Talk:
    """A conversation and what it answers."""

    def __init__(self, desk: Desk, client: Client | None = None, ranges: bool = False) -> None:
        self.client = client or desk.client()
        self.it = Conversation(desk.service, self.client, ranges)
        self.pieces: Sequence[Piece] = ()

    async def modern(self, code: Code, body: bytes, operation: int | None = None) -> tuple[int, bytes]:
        """(status, body) of the answer to a request of generation V."""
        header = bytearray(vsr_frames.request(code, len(body), b"c" * 16, 7, 1))
        if operation is not None:
            header[176] = operation
        frame = header + body
        request = vsr_frames.find_request(frame, 0, len(frame))
        assert isinstance(request, vsr_frames.Request)
        answer = await self._answer(lambda respond: self.it.modern(frame, request, respond))
        reply = vsr_frames.find_reply(answer, 0, len(answer))
        assert isinstance(reply, vsr_frames.Reply) and reply.end == len(answer) and reply.request == 7
        return reply.status, answer[reply.start :]

    async def classic(self, code: int, body: bytes) -> tuple[int, bytes]:
        frame = bytearray(classic_frames.request(code, body))
        request = classic_frames.find_request(frame, 0, len(frame))
        assert isinstance(request, classic_frames.Request)
        answer = await self._answer(lambda respond: self.it.classic(frame, request, respond))
        status, size = classic_frames.HEAD.unpack_from(answer)
        assert size == len(answer) - classic_frames.HEAD.size
        return status, answer[classic_frames.HEAD.size :]

    async def _answer(self, ask: object) -> bytes:
        answers: asyncio.Queue[Sequence[Piece]] = asyncio.Queue()
        assert callable(ask)
        ask(answers.put_nowait)
        self.pieces = await answers.get()
        assert answers.empty(), "one answer"
        return b"".join(map(as_bytes, self.pieces))


def encoded(command: Command, era: Era) -> tuple[Code, bytes]:
    return command_codec.encode(command, era)


def sending(*payloads: bytes) -> bytes:
    batch, count = of_messages([Message(payload) for payload in payloads], 1)
    return classic_codec.write_address(c.SendMessages(S, T, Partitioning.partition(0), count)) + bytes(batch)


def test_what_is_sent_is_polled_and_every_answer_is_numbered(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        talk, before = Talk(desk), desk.service.operations
        for base in (0, 2):
            status, body = await talk.modern(Code.SEND_MESSAGES, sending(b"a", b"b"))
            (sent,) = reply_codec.decode(Code.SEND_MESSAGES, body, Era.V)
            assert (status, sent.partition, sent.base_offset) == (0, 0, base)
        for _ in range(2):
            status, body = await talk.modern(*encoded(POLL, Era.V))
            assert classic_codec.PREFIX.unpack_from(body) == (0, 3, 4)
            assert [m.payload for m in messages(body[classic_codec.PREFIX.size :])] == [b"a", b"b"] * 2
        assert desk.service.operations == before + 4

    at_desk(tmp_path, work)


@pytest.mark.skipif(sys.platform != "linux", reason="ranges are for Linux")
def test_files_are_answered_in_part_only_where_the_transport_moves_them(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        found = []
        for ranges in (True, False):
            talk = Talk(desk, ranges=ranges)
            await talk.modern(Code.SEND_MESSAGES, sending(bytes(LARGE_BATCH)))
            await talk.modern(*encoded(POLL, Era.V))
            found.append((await talk.modern(*encoded(POLL, Era.V)))[1])
            assert all(isinstance(piece, bytes) for piece in talk.pieces) == (not ranges)
        assert found[1].startswith(found[0][classic_codec.PREFIX.size :], classic_codec.PREFIX.size)
        old = Talk(desk, desk.client(Era.C3), ranges=True)
        status, body = await old.classic(*encoded(POLL, Era.C3))
        assert status == 0 and classic_codec.PREFIX.unpack_from(body)[2] == 2
        assert all(isinstance(piece, bytes) for piece in old.pieces)

    at_desk(tmp_path, work)


def test_a_login_that_is_refused_is_the_end_and_says_why(tmp_path: Path) -> None:
    reasons = {
        c.Login("iggy", "no", "0.11.0", "", eras.PROTOCOL, "x"): "invalid_credentials",
        c.LoginWithToken("no", "0.11.0", "", eras.PROTOCOL, "x"): "invalid_personal_access_token",
        c.Login("iggy", "iggy", "0.11.0", "", 1, "x"): "incompatible_protocol_version",
    }

    async def work(desk: Desk) -> None:
        for login, name in reasons.items():
            talk = Talk(desk, desk.client(user=None))
            with pytest.raises(IggyError) as caught:
                await talk.modern(*encoded(login, Era.V))
            assert (caught.value.name, talk.it.evicted) == (name, True)
        talk = Talk(desk, desk.client(user=None))
        right = c.Login("iggy", "iggy", "0.11.0", "", eras.PROTOCOL, "x")
        status, body = await talk.modern(*encoded(right, Era.V))
        assert (status, body[:4], talk.it.evicted) == (0, bytes(4), False), "an empty result section goes before"

    at_desk(tmp_path, work)


def test_what_is_no_request_of_today_is_refused_and_the_talk_goes_on(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        talk = Talk(desk)
        invalid, unknown_stream = 3, 1009
        for code, body, operation, number in (
            (Code.PING, b"", 99, invalid),
            (Code.SEND_MESSAGES, b"\1", None, invalid),
            (Code.SEND_MESSAGES, b"\xff\xff\xff\x7f", None, invalid),
            (Code.POLL_MESSAGES, b"\1\2\3", None, invalid),
            (*encoded(c.DeleteStream(Identifier("nothing")), Era.V), None, unknown_stream),
        ):
            status, answer = await talk.modern(code, body, operation)
            assert (status, answer) == (number, b""), (code, body)
        assert (await talk.modern(Code.PING, b""))[0] == 0
        assert desk.poll() == (0, [])

    at_desk(tmp_path, work)


def test_what_fails_inside_is_an_error_and_no_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(service: object, client: object, command: object) -> None:
        raise ZeroDivisionError

    async def work(desk: Desk) -> None:

        monkeypatch.setitem(dispatch.HANDLERS, c.CreateStream, broken)
        command = c.CreateStream("s")
        assert await Talk(desk).modern(*encoded(command, Era.V)) == (1, b"")
        assert await Talk(desk, desk.client(Era.C3)).classic(*encoded(command, Era.C3)) == (1, b"")

    at_desk(tmp_path, work)


def test_the_oldest_of_all_is_known_by_a_topic_without_compression(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.do(c.CreateStream("s"))
        talk = Talk(desk, desk.client(Era.A2))
        status, _ = await talk.classic(*encoded(c.CreateTopic(S, "t", 1, id=4), Era.A))
        assert (status, talk.client.era) == (0, Era.A)
        other = Talk(desk, desk.client(Era.A2))
        status, _ = await other.classic(*encoded(c.CreateTopic(S, "u", 1, id=5), Era.A2))
        assert (status, other.client.era) == (0, Era.A2)

    at_desk(tmp_path, work)


@pytest.mark.parametrize("era", [Era.S, Era.A, Era.B, Era.C1, Era.C2, Era.C3])
def test_each_older_era_is_refused_in_its_own_numbers(tmp_path: Path, era: Era) -> None:
    async def work(desk: Desk) -> None:
        talk = Talk(desk, desk.client(era, user=None if era is Era.S else "iggy"))
        assert await talk.classic(7777, b"") == (3, b"")
        assert (await talk.classic(Code.SEND_MESSAGES, b"\1"))[0] != 0
        status, body = await talk.classic(*encoded(c.GetStreams(), era))
        assert (status, body) == (0, b"")

    at_desk(tmp_path, work)


def test_who_leaves_is_forgotten(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        talk = Talk(desk)
        assert talk.client.id in desk.service.clients
        talk.it.close()
        assert talk.client.id not in desk.service.clients

    at_desk(tmp_path, work)
