"""Work in steps: the same result whatever drives it, with turns of the loop between the steps."""

import asyncio
import json
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.monitored import monitored
from support.raw_wire import RawLink

from headwater.monitoring import steps
from headwater.monitoring.steps import Steps, at_once, begun, drive, encoded, encoded_pieces, in_turns
from headwater.server.system.documents import encode


def pretty(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-1000, 1000), st.text(max_size=5)),
    lambda inner: st.one_of(st.dictionaries(st.text(max_size=3), inner, max_size=3), st.lists(inner, max_size=8)),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_a_document_in_pieces_is_the_document_as_a_whole(document: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "SLICE", 3)
        assert json.loads(at_once(encoded(deepcopy(document), encode))) == document
        assert at_once(encoded(deepcopy(document), encode)) == encode(document)
        patch.setattr(steps, "PIECE", 5)
        pieces = at_once(encoded_pieces(deepcopy(document), pretty))
        assert b"".join(pieces) == pretty(document)
        assert all(len(piece) >= 5 for piece in pieces[:-1])


def test_a_step_may_wait_for_a_future() -> None:
    async def main() -> None:
        def waiting(future: "asyncio.Future[int]") -> Steps:
            yield future
            return future.result()

        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in range(2)]
        received: list[int] = []
        drive(waiting(futures[0]), received.append)
        task = asyncio.ensure_future(in_turns(waiting(futures[1])))
        for _ in range(3):
            await asyncio.sleep(0)
        assert received == [] and not task.done()
        for number, future in enumerate(futures):
            future.set_result(number)
        assert await task == 1
        assert received == [0]

    asyncio.run(main())


def counting(count: int) -> Steps:
    for _ in range(count):
        yield
    return count


def test_steps_have_turns_of_the_loop_between_them() -> None:
    async def main() -> None:
        turns: list[int] = []

        def tick() -> None:
            turns.append(len(turns))
            if len(turns) < 50:
                asyncio.get_running_loop().call_soon(tick)

        tick()
        assert await in_turns(counting(20)) == 20
        assert len(turns) >= 20
        assert begun(counting(0)) == 0
        assert await begun(counting(2)) == 2
        received: list[int] = []
        drive(counting(0), received.append)
        assert received == [0]  # at once
        drive(counting(3), received.append)
        assert received == [0]
        for _ in range(4):
            await asyncio.sleep(0)
        assert received == [0, 3]

    asyncio.run(main())


def test_steps_that_fail_are_logged_and_answer_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> Steps:
        raise ValueError("broken page")
        yield

    drive(failing(), lambda _: pytest.fail("there is no result"))
    assert "broken page" in caplog.text


CLIENTS = 600
PAGES = ["/connz?subs=1&limit=1000", "/subsz?subs=1&limit=100000", "/metrics"]
REQUESTS = ["$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.SERVER.PING.SUBSZ"]


@pytest.mark.parametrize("page", [*PAGES, *REQUESTS])
def test_a_page_about_many_clients_takes_many_turns_of_the_loop(page: str) -> None:
    """A bystander's PING is answered between two of them, whatever the clock says."""

    async def main() -> None:
        from headwater.options.access import AccountOptions, UserOptions

        system = AccountOptions(name="$SYS", users=(UserOptions(username="s", password="p"),))
        async with monitored(accounts=(system,)) as server:
            links = [await server.dial() for _ in range(CLIENTS)]
            for link in links:
                link.send(b"".join(b"SUB s.%d %d\r\n" % (n, n) for n in range(20)))
            await asyncio.to_thread(lambda: [link.settle() for link in links])
            turns = 0
            done = False

            def tick() -> None:
                nonlocal turns
                turns += 1
                if not done:
                    asyncio.get_running_loop().call_soon(tick)

            work: Any
            if page.startswith("/"):
                work = server.monitoring._respond(*_split(page))
            else:
                work = asyncio.ensure_future(_ask(server.broker.port, page))
            tick()
            await work
            done = True
            assert turns > CLIENTS // 50
            for link in links:
                link.close()

    asyncio.run(main())


def _split(page: str) -> tuple[str, dict[str, str]]:
    path, _, query = page.partition("?")
    return path, dict(one.split("=") for one in query.split("&") if one)


async def _ask(port: int, subject: str) -> bytes:
    def ask() -> bytes:
        with RawLink(port) as link:
            link.send(b'CONNECT {"verbose":false,"user":"s","pass":"p"}\r\nSUB r 1\r\n')
            body = b'{"limit":100000,"subscriptions":true}'
            link.send(b"PUB %b r %d\r\n%b\r\n" % (subject.encode(), len(body), body))
            head = link.receive_until(b"\r\n")
            while not head.startswith(b"MSG"):
                head = link.receive_until(b"\r\n")
            return link.receive(int(head.split()[-1]))

    return await asyncio.to_thread(ask)
