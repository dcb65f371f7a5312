import asyncio
import os
import platform
import re
import signal
import sys
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from support.iggy_peers import talk, with_released_client
from support.worker_processes import children, ready, started, until_printed

from headwater.errors import ConfigError
from headwater.iggy.face import IggyOptions
from headwater.iggy_client.sync import connect
from headwater.serving import serve_flags
from headwater.serving.go_flags import Value
from headwater.serving.iggy_flags import read


def test_the_flags_name_addresses() -> None:
    assert read({}, {}) is None and read({"iggy_verify": True}, {}) is None
    flags: dict[str, Value] = {"iggy": "127.0.0.1:8090", "iggy_http": ":3000", "iggy_quic": "[::1]:-1"}
    found = read(flags, {})
    assert found == IggyOptions(tcp=("127.0.0.1", 8090), http=("0.0.0.0", 3000), quic=("::1", 0))
    assert read({"iggy_websocket": ":8092"}, {}) == IggyOptions(tcp=None, websocket=("0.0.0.0", 8092))
    seeds = read({"iggy_seed": "127.0.0.1:1", "iggy_seed_http": "127.0.0.1:2"}, {})
    assert seeds == IggyOptions(tcp=None, seed=("127.0.0.1", 1), seed_http=("127.0.0.1", 2))
    for wrong in ("8090", "host", "host:port", "host:70000", "host:-2"):
        with pytest.raises(ConfigError, match="--iggy-seed-http takes HOST:PORT"):
            read({"iggy_seed_http": wrong}, {})


def test_the_flags_say_how_messages_are_taken() -> None:
    assert serve_flags.read(["--iggy", ":8090", "--iggy-unique-ids=60", "--iggy_verify"]) == {
        "iggy": ":8090",
        "iggy_unique_ids": 60,
        "iggy_verify": True,
    }
    flags: dict[str, Value] = {"iggy": ":8090", "iggy_unique_ids": 60, "iggy_verify": True}
    found = read(flags, {"IGGY_ROOT_PASSWORD": "secret"})
    assert found is not None
    assert (found.service.unique_ids_seconds, found.service.verify, found.service.sync) == (60.0, True, None)
    assert (found.service.root_user, found.service.root_password) == ("iggy", "secret")
    with pytest.raises(ConfigError, match="seconds"):
        read({"iggy": ":8090", "iggy_unique_ids": -1}, {})


def iggy_ports(lines: list[str]) -> dict[str, int]:
    """Each transport that the log names, and its port."""
    found = re.findall(r"Listening for Iggy clients \((\w+)\) on 127\.0\.0\.1:(\d+)$", "".join(lines), re.MULTILINE)
    return {name: int(port) for name, port in found}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has no limits to set")
def test_memory_for_checking_a_password_is_given_back(tmp_path: Path) -> None:
    """16 MiB for each; the second login was the one whose memory stayed, until the process ended."""
    with started("-js", "-sd", str(tmp_path), "--iggy", "127.0.0.1:-1") as process:
        url = f"iggy://iggy:iggy@127.0.0.1:{iggy_ports(ready(process)[1])['tcp']}"
        resident = psutil.Process(process.pid).memory_info
        before = resident().rss
        for _ in range(2):
            with connect(url) as client:
                client.ping()
        assert resident().rss - before < 8 << 20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has no limits to set")
def test_the_threads_of_a_server_with_iggy_share_one_heap(tmp_path: Path) -> None:
    """Eight had started before the limit of heaps was set, each with one, and glibc ignores a limit that comes after."""
    with started("-js", "-sd", str(tmp_path), "--iggy", "127.0.0.1:-1") as process:
        ready(process)
        lines = [line.split() for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines()]
    places = [(*(int(at, 16) for at in words[0].split("-")), len(words) == 5) for words in lines]
    reserved = 64 << 20  # bytes of address space that a heap of threads has, and is aligned to
    heaps = [
        start
        for (start, end, anonymous), (_, last, _) in pairwise(places)
        if anonymous and start % reserved == 0 and last - start == reserved
    ]
    assert not heaps


@pytest.mark.interop
@with_released_client
def test_the_command_serves_a_released_client(tmp_path: Path) -> None:
    async def main() -> None:
        command = ["-m", "headwater", "serve", "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", str(tmp_path)]
        listen = ["--iggy", "127.0.0.1:-1", "--iggy-http", "127.0.0.1:-1", "--iggy-quic", "127.0.0.1:-1"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        async with asyncio.timeout(60):
            process = await asyncio.create_subprocess_exec(
                sys.executable, *command, *listen, stderr=asyncio.subprocess.PIPE, env=environment
            )
            assert process.stderr is not None
            try:
                ports: dict[str, int] = {}
                while not (line := (await process.stderr.readline()).decode()).endswith("Server is ready\n"):
                    assert line
                    ports |= iggy_ports([line])
                assert ports.keys() == {"tcp", "http", "quic"}
                steps = await talk(None, "apache_iggy", f"127.0.0.1:{ports['tcp']}", 0, "x")
                assert steps["poll_headers"][0][2]["key_3"] == 123456
            finally:
                process.send_signal(signal.SIGTERM)
                await process.stderr.read()
                assert await process.wait() == 0
        assert (tmp_path / "iggy" / "catalog.a").exists()

    asyncio.run(main())


def test_workers_say_where_iggy_is_and_say_it_again_when_the_first_is_replaced(tmp_path: Path) -> None:
    """Where streams are spread over them, too; the parent speaks for them, and knew no address but those of NATS."""

    def exchanged(port: int) -> None:
        with connect(f"iggy://iggy:iggy@127.0.0.1:{port}") as client:
            client.ping()

    listen = ("--iggy", "127.0.0.1:-1", "--iggy-http", "127.0.0.1:-1")
    with started("--workers", "2", "-js", "--spread_streams", "-sd", str(tmp_path), *listen) as process:
        ports = iggy_ports(ready(process)[1])
        assert ports.keys() == {"tcp", "http"}
        exchanged(ports["tcp"])
        os.kill(children(process.pid)[0], signal.SIGKILL)
        again = iggy_ports(until_printed(process, "worker 1 is replaced\n"))
        assert again.keys() == {"tcp", "http"}
        exchanged(again["tcp"])
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
