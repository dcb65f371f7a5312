"""What all streams of a server may hold together."""

import asyncio
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from support.nats_server import start_nats_server
from support.raw_wire import RawLink

from headwater import Broker
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_room import server_caps
from headwater.jetstream_room.server_caps import Caps, ServerCaps, default_caps
from headwater.testing.ports import free_port


class Held:
    """A stream."""

    def __init__(self, storage: Literal["memory", "file"], weight: int, reserved: int = -1) -> None:
        self.weight = weight
        self.config = StreamConfig(name="S", storage=storage, max_bytes=reserved)
        self.has_room: Callable[[int], bool] | None = None

    def limit_room(self, has_room: Callable[[int], bool] | None, *, of_server: bool) -> None:
        assert of_server
        self.has_room = has_room


def test_publishes_are_checked_only_near_the_cap_of_their_storage() -> None:
    memory, file, other = Held("memory", 10), Held("file", 100), Held("file", 100)
    caps = ServerCaps(Caps(1000, 300), lambda: [memory, file, other])
    caps.look()
    assert (memory.has_room, file.has_room, other.has_room) == (None, None, None)
    other.weight = 180
    caps.look()
    assert memory.has_room is None and file.has_room is not None and other.has_room is not None
    assert file.has_room(20) and not file.has_room(21)
    other.weight = 100
    caps.look()
    assert file.has_room is None and other.has_room is None


def test_what_may_be_reserved_is_bounded_and_nothing_always_may() -> None:
    one, other, without_bound = Held("file", 0, 200), Held("memory", 0, 10_000), Held("file", 50)
    caps = ServerCaps(Caps(20_000, 300), lambda: [one, other, without_bound])
    assert caps.may_reserve("file", 100, None)
    assert not caps.may_reserve("file", 101, None)
    assert caps.may_reserve("file", 300, one), "its own reservation is the one that changes"
    assert caps.may_reserve("file", -1, None)
    assert caps.may_reserve("memory", 10_000, None)


def test_a_container_has_what_its_group_may_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(server_caps, "CGROUP", str(limit))
    machine = server_caps.memory_of_the_machine()
    assert machine > 1 << 20
    limit.write_text("max\n")
    assert server_caps.memory_of_the_machine() == machine
    limit.write_text("1048576\n")
    assert server_caps.memory_of_the_machine() == 1048576
    assert default_caps(str(tmp_path / "not" / "there")).memory == 1048576 // 4 * 3


async def ask(port: int, subject: str, document: object, payload: bytes | None = None) -> dict[str, object]:
    def work() -> dict[str, object]:
        body = msgspec.json.encode(document) if payload is None else payload
        with RawLink(port) as link:
            link.send(
                b'CONNECT {"verbose":false}\r\nSUB r 1\r\nPUB %b r %d\r\n%b\r\n' % (subject.encode(), len(body), body)
            )
            head = link.receive_until(b"\r\n")
            while not head.startswith(b"MSG"):
                head = link.receive_until(b"\r\n")
            answer: dict[str, object] = msgspec.json.decode(link.receive(int(head.split()[-1])))
            return answer

    return await asyncio.to_thread(work)


CREATE = "$JS.API.STREAM.CREATE.S"


@pytest.mark.parametrize("storage", ["memory", "file"])
def test_a_publisher_hears_that_the_server_is_full_and_goes_on_when_there_is_room(tmp_path: Path, storage: str) -> None:
    async def main() -> None:
        async with Broker(port=0, jetstream=True, store_dir=tmp_path) as broker:
            caps = broker.jetstreams["$G"].caps
            assert caps is not None
            await ask(broker.port, CREATE, {"name": "S", "subjects": ["s"], "storage": storage})
            assert "seq" in await ask(broker.port, "s", None, b"x" * 1000)
            caps.caps = Caps(1500, 1500)
            assert "seq" in await ask(broker.port, "s", None, b"x" * 400)
            caps.look()
            refused = await ask(broker.port, "s", None, b"x" * 1000)
            assert refused["error"]["err_code"] == 10023  # type: ignore[index]
            wanted = "max_memory_store" if storage == "memory" else "max_file_store"
            assert wanted in refused["error"]["description"]  # type: ignore[index]
            await ask(broker.port, "$JS.API.STREAM.PURGE.S", {})
            caps.look()
            assert "seq" in await ask(broker.port, "s", None, b"x" * 400)

    asyncio.run(main())


def get(port: int) -> dict[str, dict[str, int]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/jsz", timeout=20) as answer:
        document: dict[str, dict[str, int]] = msgspec.json.decode(answer.read())
        return document


@pytest.mark.interop
def test_the_caps_are_those_of_nats_server(tmp_path: Path) -> None:
    """The disk is another process's too: its room changes while they start."""

    async def main() -> None:
        huge = {"name": "S", "subjects": ["s"], "max_bytes": 1 << 60}
        page = free_port()
        with start_nats_server(tmp_path, "-m", str(page)) as theirs:
            async with Broker(port=0, jetstream=True, store_dir=tmp_path / "ours") as ours:
                found = (await asyncio.to_thread(get, page))["config"]
                caps = ours.jetstreams["$G"].caps
                assert caps is not None
                assert caps.caps.memory == found["max_memory"]
                assert abs(caps.caps.storage - found["max_storage"]) < 0.05 * found["max_storage"] + (1 << 30)
                for storage in ("file", "memory"):
                    answers = [
                        (await ask(port, CREATE, {**huge, "storage": storage}))["error"]
                        for port in (theirs.port, ours.port)
                    ]
                    assert answers[0] == answers[1]

    asyncio.run(main())
