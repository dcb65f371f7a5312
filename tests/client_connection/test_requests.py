"""Requests over one inbox: whose answer is whose, and what ends the waiting."""

import asyncio
import gc
import inspect
import logging
from collections.abc import Callable
from contextvars import ContextVar
from itertools import groupby
from typing import Any

import pytest
from support.scripted_server import PATIENCE, Peer, conversation, finish, until

from headwater.client.client import Client
from headwater.client_connection.requests import is_no_responders, new_inbox
from headwater.errors import NoResponders, PayloadTooLarge, RequestTimeout, SubjectError
from headwater.model.message import Message


async def receive_request(peer: Peer) -> tuple[bytes, bytes]:
    """The reply subject and the payload of the next request."""
    control = (await peer.receive_line()).split()
    payload = await peer.receive(int(control[-1]) + 2)
    return control[2], payload[:-2]


def send(peer: Peer, reply: bytes, payload: bytes) -> None:
    peer.send(b"MSG %s 1 %d\r\n%s\r\n" % (reply, len(payload), payload))


def test_the_first_request_subscribes_once_for_all_of_them() -> None:
    async def main() -> None:
        async with conversation(inbox_prefix="_INBOX.mine") as (client, peer):
            pending = [asyncio.create_task(client.request("q", b"%d" % n)) for n in range(3)]
            sub = (await peer.receive_line()).split()
            assert sub[0] == b"SUB"
            assert sub[1].startswith(b"_INBOX.mine.")
            assert sub[1].endswith(b".*")
            received = [await receive_request(peer) for _ in pending]
            assert len({reply for reply, _ in received}) == 3
            for reply, payload in reversed(received):
                send(peer, reply, b"answer to " + payload)
            assert [(await one).data for one in pending] == [b"answer to 0", b"answer to 1", b"answer to 2"]
            assert client._requests.outstanding == 0

    finish(main())


def test_a_request_with_headers_names_the_size_of_both_parts_after_its_reply_subject() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            pending = asyncio.create_task(client.request("q", bytearray(b"data"), headers={"K": "v"}))
            inbox = (await peer.receive_line()).split()[1].removesuffix(b"*")
            assert await peer.receive_line() == b"HPUB q %b1 18 22" % inbox
            assert await peer.receive(24) == b"NATS/1.0\r\nK: v\r\n\r\ndata\r\n"
            send(peer, inbox + b"1", b"answer")
            assert (await pending).data == b"answer"

    finish(main())


def test_a_request_says_its_arguments_and_is_a_coroutine_that_sends_nothing_until_it_is_awaited() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            parameters = inspect.signature(client.request).parameters
            assert list(parameters) == ["subject", "data", "timeout", "old_style", "headers", "repeat", "payload"]
            assert parameters["subject"].annotation in ("str", str)
            with pytest.warns(RuntimeWarning, match="never awaited"):
                client.request("q")  # type: ignore[unused-coroutine]
                gc.collect()
            with pytest.raises(TypeError, match="there is one way to ask"):
                await client.request("q", old_style=True)  # type: ignore[arg-type]
            assert client._requests.outstanding == 0
            client.publish("p")
            assert await peer.receive_line() == b"PUB p 0"

    finish(main())


def test_a_request_times_out_naming_what_was_asked_and_a_late_answer_harms_nobody() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            with pytest.raises(RequestTimeout, match=r"'q\.slow' within 0\.01 s"):
                await client.request("q.slow", timeout=0.01)
            await peer.receive_line()
            late, _ = await receive_request(peer)
            second = asyncio.create_task(client.request("q"))
            reply, _ = await receive_request(peer)
            send(peer, late, b"late")
            send(peer, late + b".x", b"strange")
            send(peer, reply, b"first")
            send(peer, reply, b"second")
            assert (await second).data == b"first"
            assert client._requests.outstanding == 0
            assert client.is_connected

    finish(main())


def test_a_cancelled_request_is_forgotten() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            pending = asyncio.create_task(client.request("q"))
            await peer.receive_line()
            pending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pending
            assert client._requests.outstanding == 0

    finish(main())


def test_a_refused_request_is_forgotten_too() -> None:
    async def main() -> None:
        async with conversation() as (client, _):
            with pytest.raises(SubjectError):
                await client.request("q q")
            with pytest.raises(PayloadTooLarge):
                await client.request("q", bytes(2 << 20))
            assert client._requests.outstanding == 0

    finish(main())


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (b"NATS/1.0 503", "^nobody is subscribed to 'q'"),
        (b"NATS/1.0 503 No Responders", "^nobody is subscribed to 'q'"),
        (b"NATS/1.0 503 no room on the server's disk", "^'q' is not served: no room on the server's disk"),
    ],
)
def test_no_responders_is_known_at_once_and_the_reason_if_one_is_given(status: bytes, says: str) -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            pending = asyncio.create_task(client.request("q", timeout=60))
            await peer.receive_line()
            reply, _ = await receive_request(peer)
            size = len(status) + 4
            peer.send(b"HMSG %b 1 %d %d\r\n%b\r\n\r\n\r\n" % (reply, size, size, status))
            with pytest.raises(NoResponders, match=says):
                await pending

    finish(main())


def test_losing_the_connection_with_many_requests_out_leaves_no_undelivered_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with conversation(error_callback=lambda _: None) as (client, peer):
            pending = [asyncio.create_task(client.request("q")) for _ in range(5)]
            await peer.receive_line()
            pending[0].cancel()
            peer.hang_up()
            outcomes = await asyncio.gather(*pending, return_exceptions=True)
            assert isinstance(outcomes[0], asyncio.CancelledError)
            assert all("lost" in str(outcome) for outcome in outcomes[1:])

    with caplog.at_level(logging.WARNING):
        finish(main())
    assert "never retrieved" not in caplog.text


@pytest.mark.parametrize(
    ("block", "data", "says"),
    [
        (b"NATS/1.0 503\r\n\r\n", b"", True),
        (b"NATS/1.0 503 No Responders\r\nNats-Subject: q\r\n\r\n", b"", True),
        (b"NATS/1.0 503\r\n\r\n", b"data", False),
        (b"NATS/1.0\r\nStatus: 503\r\n\r\n", b"", False),
        (b"NATS/1.0 404\r\n\r\n", b"", False),
        (b"garbage", b"", False),
        (b"", b"", False),
    ],
)
def test_only_a_status_line_without_data_says_no_responders(block: bytes, data: bytes, says: bool) -> None:
    assert is_no_responders(Message("r", data, "", block)) is says


def test_inboxes_differ() -> None:
    assert len({new_inbox("_INBOX") for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    "status", [b"100 Idle Heartbeat", b"200 OK", b"404 Not Found", b"408 Timeout", b"409 Conflict"]
)
def test_any_status_but_503_is_an_answer_and_tells_itself(status: bytes) -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            answering = asyncio.create_task(client.request("q"))
            await peer.receive_line()
            reply, _ = await receive_request(peer)
            block = b"NATS/1.0 " + status + b"\r\n\r\n"
            peer.send(b"HMSG %s 1 %d %d\r\n%s\r\n" % (reply, len(block), len(block), block))
            answer = await answering
            code, _, description = status.decode().partition(" ")
            assert answer.status == (int(code), description)
            assert not answer.headers

    finish(main())


async def answer_together(client: Client, peer: Peer, count: int, then: Callable[[], object]) -> None:
    """Answer `count` requests in one write; `then` is called when the client has all answers and no task has gone on."""
    client.deliver_directly("then", lambda _: then())
    inbox = (await peer.receive_line()).split()[-1]
    replies = [(await receive_request(peer))[0] for _ in range(count)]
    other = (await peer.receive_line()).split()[-1]
    answers = b"".join(b"MSG %s %s 1\r\n%d\r\n" % (reply, inbox, n % 10) for n, reply in enumerate(replies))
    peer.send(answers + b"MSG then %s 0\r\n\r\n" % other)


def test_a_task_that_is_cancelled_once_its_answer_is_there_is_cancelled() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            tasks = [asyncio.create_task(client.request("q")) for _ in range(3)]
            await asyncio.sleep(0)
            await answer_together(client, peer, 3, lambda: tasks[1].cancel("enough"))
            assert [one.data for one in await asyncio.gather(tasks[0], tasks[2])] == [b"0", b"2"]
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
            assert tasks[1].cancelled()

    finish(main())


def test_the_time_and_the_cancelling_of_asyncio_end_a_request() -> None:
    async def main() -> None:
        async with conversation() as (client, _):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.request("q", timeout=60), 0.01)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await client.request("q", timeout=60)
            task = asyncio.create_task(client.request("q", timeout=60))
            await asyncio.sleep(0)
            task.cancel("enough")
            with pytest.raises(asyncio.CancelledError, match="enough"):
                await task
            assert client._requests.outstanding == 0

    finish(main())


def test_a_task_goes_on_in_its_own_context() -> None:
    number_of: ContextVar[int] = ContextVar("number")

    async def ask(client: Client, number: int) -> int:
        number_of.set(number)
        await client.request("q")
        return number_of.get()

    async def main() -> None:
        async with conversation() as (client, peer):
            tasks = [asyncio.create_task(ask(client, number)) for number in range(3)]
            await asyncio.sleep(0)
            await answer_together(client, peer, 3, lambda: number_of.set(9))
            assert [await task for task in tasks] == [0, 1, 2]

    finish(main())


def test_a_task_that_ends_the_loop_leaves_the_others_their_answers() -> None:
    async def ask(client: Client, number: int) -> int:
        await client.request("q")
        if number == 1:
            raise SystemExit(7)
        return number

    async def main(tasks: list[asyncio.Task[int]], ended: asyncio.Event) -> tuple[int, int, int]:
        async with conversation() as (client, peer):
            tasks += [asyncio.create_task(ask(client, number)) for number in range(4)]
            await asyncio.sleep(0)
            await answer_together(client, peer, 4, lambda: None)
            await ended.wait()
            return await tasks[0], await tasks[2], await tasks[3]

    loop = asyncio.new_event_loop()
    try:
        tasks: list[asyncio.Task[int]] = []
        ended = asyncio.Event()
        running = loop.create_task(main(tasks, ended))
        with pytest.raises(SystemExit):
            loop.run_forever()
        assert isinstance(tasks[1].exception(), SystemExit)
        ended.set()
        assert loop.run_until_complete(asyncio.wait_for(running, PATIENCE)) == (0, 2, 3)
    finally:
        loop.close()


def test_tasks_of_python_and_the_debug_mode_wait_for_answers_too() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_debug(True)
        python_task: Any = asyncio.tasks._PyTask  # type: ignore[attr-defined]
        async with conversation() as (client, peer):  # its timeouts want a task of C since Python 3.14
            loop.set_task_factory(lambda loop, work, **named: python_task(work, loop=loop, **named))
            tasks = [asyncio.create_task(client.request("q")) for _ in range(2)]
            await asyncio.sleep(0)
            await answer_together(client, peer, 2, lambda: None)
            assert [(await task).data for task in tasks] == [b"0", b"1"]
            waiting = asyncio.create_task(client.request("q", timeout=60))
            await asyncio.sleep(0)
            assert "PendingRequest" in repr(waiting)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    finish(main())


def test_only_its_own_number_answers_a_request() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            pending = asyncio.create_task(client.request("q"))
            await peer.receive_line()
            reply, _ = await receive_request(peer)
            inbox, number = reply[:-1], reply[-1:]
            assert number == b"1"
            for odd in (
                b"",
                b"0",
                b"01",
                b"-1",
                b"+1",
                b"1x",
                b"x",
                b"1.1",
                b".1",
                b"\xb2",
                b"2",
                b"1" * 18,
                b"1" * 30,
            ):
                send(peer, inbox + odd, b"odd")
            send(peer, inbox + number, b"its own")
            assert (await pending).data == b"its own"

    finish(main())


def test_a_task_goes_on_and_has_written_in_the_read_that_brought_its_answer() -> None:
    async def ask(client: Client) -> None:
        await client.request("q")
        await client.request("again")

    async def main() -> None:
        async with conversation() as (client, peer):
            task = asyncio.create_task(ask(client))
            await peer.receive_line()
            reply, _ = await receive_request(peer)
            connection: Any = client._connection
            link, owner = connection.link, connection.conversation
            receive, sent = owner.receive, []

            def receive_and_look(buffer: bytearray, filled: int) -> int:
                before = link.sent
                used: int = receive(buffer, filled)
                sent.append((link.sent - before > 0, link.output.size, link._flush_scheduled))
                return used

            owner.receive = receive_and_look
            send(peer, reply, b"answer")
            await receive_request(peer)
            assert sent == [(True, 0, False)]
            task.cancel()
            await asyncio.wait([task])

    finish(main())


def test_what_came_with_the_answer_that_ends_the_loop_is_not_delivered_twice() -> None:
    delivered: list[bytes] = []

    async def ask(client: Client) -> None:
        await client.request("q")
        raise SystemExit(7)

    async def main(ended: asyncio.Event) -> None:
        async with conversation() as (client, peer):
            task = asyncio.create_task(ask(client))
            await asyncio.sleep(0)
            await answer_together(client, peer, 1, lambda: delivered.append(b"then"))
            await ended.wait()
            assert isinstance(task.exception(), SystemExit)
            client.deliver_directly("last", lambda _: delivered.append(b"last"))
            sub = (await peer.receive_line()).split()
            peer.send(b"MSG last %s 0\r\n\r\n" % sub[-1])
            await until(lambda: delivered[-1] == b"last")

    loop = asyncio.new_event_loop()
    try:
        ended = asyncio.Event()
        running = loop.create_task(main(ended))
        with pytest.raises(SystemExit):
            loop.run_forever()
        ended.set()
        loop.run_until_complete(asyncio.wait_for(running, PATIENCE))
        assert delivered == [b"then", b"last"]
    finally:
        loop.close()


def test_of_many_tasks_that_go_on_together_the_first_have_written_before_the_last() -> None:
    async def ask(client: Client, sent: list[int]) -> None:
        await client.request("q")
        assert client._connection.link is not None
        sent.append(client._connection.link.sent)
        await client.request("again")

    async def main() -> None:
        async with conversation() as (client, peer):
            sent: list[int] = []
            tasks = [asyncio.create_task(ask(client, sent)) for _ in range(70)]
            await asyncio.sleep(0)
            await answer_together(client, peer, 70, lambda: None)
            await until(lambda: len(sent) == 70)
            assert [len(list(together)) for _, together in groupby(sent)] == [32, 32, 6]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    finish(main())
