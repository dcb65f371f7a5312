"""An Iggy server of ours in a process of its own, and what tests put into its topics."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support import iggy_server_program

from headwater.iggy_client.blocking import BlockingIggy
from headwater.iggy_client.requests import login_of
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import Identifier


@dataclass(frozen=True, slots=True)
class IggyServer:
    port: int

    @property
    def url(self) -> str:
        return f"iggy://127.0.0.1:{self.port}"

    @contextmanager
    def client(self) -> Iterator[BlockingIggy]:
        """A client that is logged in."""
        client = BlockingIggy.connect("127.0.0.1", self.port, login_of("iggy", "iggy", ""), 20.0)
        try:
            yield client
        finally:
            client.close()

    def fill(self, stream: str, topic: str, partitions: list[list[Message]]) -> None:
        """Make stream and topic where they are not there, and send a batch to each partition that has one."""
        with self.client() as client:
            if client.execute(c.GetStream(Identifier(stream))) is None:
                client.execute(c.CreateStream(stream))
            if client.topic(stream, topic) is None:
                client.execute(c.CreateTopic(Identifier(stream), topic, len(partitions)))
            for number, messages in enumerate(partitions):
                for start in range(0, len(messages), 5_000):
                    client.send(stream, topic, number, messages[start : start + 5_000])

    def execute(self, command: c.Command) -> None:
        with self.client() as client:
            client.execute(command)


@contextmanager
def start_iggy(directory: Path) -> Iterator[IggyServer]:
    """Run until the block ends; then it is killed."""
    command = [sys.executable, iggy_server_program.__file__, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield IggyServer(int(process.stdout.readline()))
        finally:
            process.kill()
