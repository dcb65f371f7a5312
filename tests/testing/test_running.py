"""A broker in a thread: any test can have one, and it leaves nothing behind."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.raw_wire import dial

from headwater.errors import ConfigError, EnvironmentProblem, LocalProtocolError
from headwater.testing import RunningBroker


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("headwater-broker")]


def test_it_is_there_without_pytest() -> None:
    program = """
import sys
sys.modules["pytest"] = None
from headwater.testing import RunningBroker
with RunningBroker() as broker:
    print(broker.port)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 0


def test_it_serves_while_it_runs_and_is_gone_afterwards() -> None:
    with RunningBroker(server_name="mine") as broker:
        port = broker.port
        with dial(port) as link:
            assert json.loads(link.greeting[5:])["server_name"] == "mine"
            link.send(b"SUB a 1\r\nPUB a 2\r\nok\r\n")
            assert link.settle() == b"MSG a 1 2\r\nok\r\n"
        assert repr(broker) == f"<RunningBroker nats://127.0.0.1:{port}>"
        assert threads() == ["headwater-broker"]
    assert threads() == []
    assert repr(broker) == "<RunningBroker stopped>"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5).close()


def test_clients_that_are_still_there_are_closed_when_it_stops() -> None:
    broker = RunningBroker()
    broker.start()
    with dial(broker.port) as link:
        broker.stop()
        link.receive_end()
    broker.stop()


def test_a_restart_keeps_port_and_streams(tmp_path: Path) -> None:
    with RunningBroker(jetstream=True, store_dir=tmp_path) as broker:
        port = broker.port
        body = b'{"name":"S","subjects":["s"]}'
        with dial(port) as link:
            link.send(b"SUB reply 1\r\nPUB $JS.API.STREAM.CREATE.S reply %d\r\n%b\r\n" % (len(body), body))
            link.receive_until(b"stream_create_response")
        broker.restart()
        assert broker.port == port
        with dial(port) as link:
            link.send(b"SUB reply 1\r\nPUB $JS.API.STREAM.NAMES reply 0\r\n\r\n")
            assert b'"streams":["S"]' in link.receive_until(b"}\r\n")


def test_clients_can_be_cut_off() -> None:
    with RunningBroker() as broker, dial(broker.port) as link:
        broker.drop_clients()
        link.receive_end()
        with dial(broker.port) as again:
            assert again.settle() == b""


def test_work_can_be_done_in_its_loop() -> None:
    async def name() -> str:
        assert asyncio.get_running_loop()
        return threading.current_thread().name

    with RunningBroker() as broker:
        assert broker.call(name()) == "headwater-broker"
    with pytest.raises(LocalProtocolError, match="not started"):
        broker.call(name())


def test_what_cannot_start_says_so_where_it_was_started() -> None:
    with pytest.raises(ConfigError, match="ping_max must be at least 1"):
        RunningBroker(ping_max=0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        broker = RunningBroker(port=taken.getsockname()[1])
        with pytest.raises(EnvironmentProblem, match="cannot listen"):
            broker.start()
    assert threads() == []
    with pytest.raises(LocalProtocolError, match="not started"):
        _ = broker.url
    broker.start()
    with pytest.raises(LocalProtocolError, match="started already"):
        broker.start()
    broker.stop()


def test_many_can_run_at_once() -> None:
    brokers = [RunningBroker() for _ in range(5)]
    for broker in brokers:
        broker.start()
    assert len({broker.port for broker in brokers}) == 5
    for broker in brokers:
        broker.stop()
