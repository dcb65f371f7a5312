"""Descriptors that are kept for imports."""

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.net.deferred_modules import defer
from headwater.net.spare_descriptors import LATER, SPARE, SpareDescriptors

Call = Callable[[], None]


class Loop:
    """Keeps the calls that it is given."""

    def __init__(self) -> None:
        self.soon: list[Call] = []
        self.later: list[tuple[float, Call]] = []

    def call_later(self, seconds: float, call: Call) -> None:
        self.later.append((seconds, call))


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def spare(loop: Loop) -> Iterator[SpareDescriptors]:
    with SpareDescriptors(loop.soon.append, loop.call_later) as spare:
        yield spare
    assert spare.held == 0
    assert spare not in sys.meta_path


def test_they_are_given_up_when_a_module_is_looked_for_and_taken_again_after_it(
    spare: SpareDescriptors, loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "looked_for.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)  # may import something
    loop.soon.clear()
    spare.hold()
    assert spare.held == SPARE
    __import__("looked_for")
    assert spare.held == 0
    (again,) = loop.soon
    again()
    assert (spare.held, loop.later) == (SPARE, [])
    sys.modules.pop("looked_for")


def test_they_are_given_up_when_a_deferred_module_is_executed(
    spare: SpareDescriptors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "used_late.py").write_text("name = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    defer("used_late")
    spare.hold()
    module = __import__("used_late")
    assert spare.held == SPARE
    assert module.name == 1
    assert spare.held == 0
    sys.modules.pop("used_late")


def test_a_module_that_is_known_costs_nothing(spare: SpareDescriptors, loop: Loop) -> None:
    __import__("os")
    assert (spare.held, loop.soon) == (SPARE, [])


def test_what_there_is_no_room_for_is_asked_for_again(spare: SpareDescriptors, loop: Loop) -> None:
    spare.find_spec("anything")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        loop.soon.pop()()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert spare.held == 0
    ((seconds, again),) = loop.later
    again()
    assert (seconds, spare.held) == (LATER, SPARE)


@pytest.mark.skipif(sys.platform != "linux", reason="counts what a process has open by /proc")
def test_a_server_without_descriptors_answers_the_system_account_and_reports_traces() -> None:
    program = (
        "import asyncio, os, resource, sys\n"
        "import headwater\n"
        "from headwater.net.spare_descriptors import SpareDescriptors\n"
        "from headwater.server.broker import Broker\n"
        "async def main():\n"
        "    loop = asyncio.get_running_loop()\n"
        "    async with Broker() as broker, await headwater.connect(broker.url) as client:\n"
        "        reports = await client.subscribe('traces')\n"
        "        with SpareDescriptors(loop.call_soon_threadsafe, loop.call_later):\n"
        "            most = max(map(int, os.listdir('/proc/self/fd')))\n"
        "            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))\n"
        "            try:\n"
        "                while True:\n"
        "                    os.dup(1)\n"
        "            except OSError:\n"
        "                print('none is left')\n"
        "            print('headwater.server.system.services' in sys.modules)\n"
        "            answer = await client.request('$SYS.REQ.USER.INFO', timeout=10)\n"
        "            print(bytes(answer.data)[:9])\n"
        "            await client.publish('s', b'', headers={'Nats-Trace-Dest': 'traces'})\n"
        "            async for report in reports:\n"
        "                print(bytes(report.data)[:10])\n"
        "                break\n"
        "            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    printed = ["none is left", "False", "b'{\"server\"'", "b'{\"server\":'"]
    assert done.stdout.splitlines() == printed, done.stderr
