"""What workers say to each other; both ends are on one router here, as messages of a route come in."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from support.clusters import until
from support.in_loop import in_loop

from headwater.errors import JetStreamError
from headwater.exchange.router import Router
from headwater.jetstream_workers import line as module
from headwater.jetstream_workers.line import Line, Reply


class Recorder:
    """A listener that answers by a function."""

    def __init__(self, answer: Callable[[str, bytes], Reply]) -> None:
        self.received: list[tuple[object, ...]] = []
        self._answer = answer

    def on_question(self, what: str, payload: bytes) -> Reply:
        return self._answer(what, payload)

    def on_request(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        self.received.append((subject, reply, header_block, payload))

    def on_seek(self, left: int, subject: bytes, reply: bytes, payload: bytes) -> None:
        self.received.append((left, subject, reply, payload))

    def on_notice(self, what: str, payload: bytes) -> None:
        self.received.append((what, payload))


def a_router() -> Router:
    return Router(asyncio.get_running_loop().call_soon, 1, 1 << 20)


def lines(count: int, up: int) -> list[Line]:
    """The ends at `up` of `count` workers."""
    router = a_router()
    found = [Line(router, number, count) for number in range(1, up + 1)]
    for line in found:
        line.start()
    return found


@in_loop
async def test_a_question_gets_its_answer_at_once_or_later() -> None:
    async def later(payload: bytes) -> bytes:
        await asyncio.sleep(0)
        return payload.upper()

    one, two = lines(2, 2)
    two.attach("A", Recorder(lambda what, payload: later(payload) if what == "later" else payload))
    assert await one.ask(2, "A", "now", b"x") == b"x"
    assert await one.ask_others("A", "later", b"y") == [b"Y"]
    assert await one.ask_others("A", "later", b"y", besides=2) == []


@in_loop
async def test_an_answer_to_a_worker_that_has_died_is_none_to_the_one_in_its_place() -> None:
    router = a_router()
    one, two = Line(router, 1, 2), Line(router, 2, 2)
    one.start()
    two.start()
    late: list[asyncio.Future[bytes]] = []

    async def later() -> bytes:
        late.append(asyncio.get_running_loop().create_future())
        return await late[-1]

    two.attach("A", Recorder(lambda what, payload: later()))
    before = asyncio.create_task(one.ask(2, "A", "what", b""))
    await until(lambda: len(late) == 1, "the question of the one that dies")
    one.stop()
    again = Line(router, 1, 2)
    again.start()
    question = asyncio.create_task(again.ask(2, "A", "what else", b""))
    await until(lambda: len(late) == 2, "the question of the one in its place")
    late[0].set_result(b"to the dead")
    await asyncio.sleep(0)
    late[1].set_result(b"to the living")
    assert await question == b"to the living"
    with pytest.raises(asyncio.CancelledError):
        await before


@in_loop
async def test_an_answer_is_taken_before_anything_that_follows_it() -> None:
    one, two = lines(2, 2)
    order: list[str] = []
    listener = Recorder(lambda what, payload: b"")

    def note(what: str, payload: bytes) -> bytes:
        order.append("question")
        return b""

    one.attach("A", Recorder(note))
    two.attach("A", listener)
    pending = asyncio.ensure_future(one.ask(2, "A", "x", b"", lambda answer: order.append("answer")))
    await asyncio.sleep(0)
    await two.ask(1, "A", "y", b"")
    await pending
    assert order == ["answer", "question"]


@in_loop
async def test_a_worker_whose_connection_is_gone_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 1000)
    one, two = lines(2, 2)
    two.attach("A", Recorder(lambda what, payload: b""))
    refused: list[str] = []
    await one.ask(2, "A", "x", b"")
    two.stop()
    with pytest.raises(JetStreamError) as away:
        await one.ask(2, "A", "x", b"")
    assert (away.value.err_code, away.value.description.endswith("worker 2 did not answer")) == (10008, True)
    assert one.send(2, "A", b"API.STREAM.INFO.s", b"", b"", b"") is False
    one.send_or(2, "A", b"API.STREAM.INFO.s", b"", b"", b"", lambda: refused.append("away"))
    assert refused == ["away"]


@in_loop
async def test_questions_and_requests_wait_for_a_worker_that_starts() -> None:
    (one,) = lines(2, 1)
    question = asyncio.ensure_future(one.ask(2, "A", "x", b"y"))
    one.send_or(2, "A", b"API.STREAM.INFO.s", b"inbox", b"", b"{}", lambda: pytest.fail("it was refused"))
    await asyncio.sleep(0)
    assert not question.done()
    two, listener = Line(one._router, 2, 2), Recorder(lambda what, payload: payload)
    two.attach("A", listener)
    two.start()
    assert await asyncio.wait_for(question, 30) == b"y"
    await asyncio.wait_for(asyncio.gather(*one._answering), 30)
    assert listener.received == [(b"$JS.API.STREAM.INFO.s", b"inbox", b"", b"{}")]


@in_loop
async def test_a_worker_that_does_not_come_is_named_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.03)
    (one,) = lines(2, 1)
    refused: list[str] = []
    one.send_or(2, "A", b"API.STREAM.INFO.s", b"", b"", b"", lambda: refused.append("away"))
    with pytest.raises(JetStreamError, match="worker 2 did not answer"):
        await one.ask(2, "A", "x", b"")
    await asyncio.wait_for(asyncio.gather(*one._answering), 30)
    assert refused == ["away"]


@in_loop
async def test_only_so_many_requests_wait_for_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 1)
    (one,) = lines(2, 1)
    refused: list[str] = []
    for name in ("first", "second"):
        one.send_or(2, "A", b"API.STREAM.INFO.s", b"", b"", b"", partial(refused.append, name))
    assert refused == ["second"]
    one.stop()


@in_loop
async def test_a_worker_that_hangs_is_named_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.01)

    async def never() -> bytes:
        await asyncio.Event().wait()
        return b""

    one, two = lines(2, 2)
    two.attach("A", Recorder(lambda what, payload: never()))
    with pytest.raises(JetStreamError, match="worker 2 did not answer"):
        await one.ask(2, "A", "x", b"")
    two.stop()


@in_loop
async def test_refusals_and_faults_reach_the_asker_as_errors(caplog: pytest.LogCaptureFixture) -> None:
    def answer(what: str, payload: bytes) -> Reply:
        if what == "refuse":
            raise JetStreamError(503, 10008, "not now")
        raise ValueError("a fault")

    one, two = lines(2, 2)
    two.attach("A", Recorder(answer))
    with pytest.raises(JetStreamError, match="not now"):
        await one.ask(2, "A", "refuse", b"")
    with pytest.raises(JetStreamError, match="worker 2 failed to answer"):
        await one.ask(2, "A", "fail", b"")
    assert "worker_question_failed what=fail" in caplog.text
    with pytest.raises(JetStreamError, match="worker 2 did not answer"):
        await one.ask(2, "an account without streams there", "x", b"")


@in_loop
async def test_requests_seeks_and_news_reach_the_account_as_they_were_sent() -> None:
    one, two = lines(2, 2)
    listener = Recorder(lambda what, payload: b"")
    two.attach("A", listener)
    assert one.send(2, "A", b"API.STREAM.INFO.s", b"inbox", b"NATS/1.0\r\nA: b\r\n\r\n", b"{}")
    assert one.send(2, "A", b"SEEK.1.DIRECT.GET.s.a.b", b"inbox", b"", b"{}")
    one.notify("A", "made", b"s")
    assert listener.received == [
        (b"$JS.API.STREAM.INFO.s", b"inbox", b"NATS/1.0\r\nA: b\r\n\r\n", b"{}"),
        (1, b"$JS.API.DIRECT.GET.s.a.b", b"inbox", b"{}"),
        ("made", b"s"),
    ]


@in_loop
async def test_as_many_as_are_expected_are_waited_for_until_they_answer() -> None:
    one, two = lines(3, 2)
    await one.until_answered(1)
    waiting = asyncio.ensure_future(one.until_answered(2))
    await two.ask(1, "-", "there", b"")
    assert not waiting.done()
    third = Line(one._router, 3, 3)
    third.start()
    await asyncio.wait_for(waiting, 30)
