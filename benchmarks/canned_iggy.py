"""The least that an Iggy server can do, as a bound for the released client: the client's cost when the server costs
nothing.

A blocking socket and one buffer: a send is read and discarded, a poll is answered with the last batch received, byte for
byte; nothing is checked, stamped, stored or locked. Everything before that (login, stream, topic) is handled by the real
service. The rate of a client against this server is the client's own limit, which no server can raise.
"""

import asyncio
import socket
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwater.iggy.clients import TCP
from headwater.iggy.conversation import Conversation
from headwater.iggy.service import Service
from headwater.iggy_wire import classic_codec, reply_codec, vsr_frames
from headwater.iggy_wire.command_codec import SEND
from headwater.iggy_wire.commands import Code
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.reply_codec import SentView

LARGEST = 8 << 20  # bytes of a request
METADATA_SIZE = 4  # bytes of the length of a send's address


class CannedConnection:
    """One client, in a thread: reads a whole request, then answers it."""

    def __init__(
        self, link: socket.socket, talk: Conversation, loop: asyncio.AbstractEventLoop, per_batch: int
    ) -> None:
        self._link = link
        self._talk = talk
        self._loop = loop
        self._per_batch = per_batch
        self._buffer = bytearray(LARGEST)
        self._batch = b""

    def run(self) -> None:
        while self._read(0, vsr_frames.HEADER_SIZE):
            size = int.from_bytes(self._buffer[48:52], "little")
            if not self._read(vsr_frames.HEADER_SIZE, size):
                return
            request = vsr_frames.find_request(self._buffer, 0, size)
            assert not isinstance(request, int)
            self._write(self._answer(request))

    def _read(self, filled: int, wanted: int) -> bool:
        with memoryview(self._buffer) as view:
            while filled < wanted:
                count = self._link.recv_into(view[filled:wanted])
                if not count:
                    return False
                filled += count
        return True

    def _write(self, pieces: Sequence[bytes]) -> None:
        sent = self._link.sendmsg(pieces)
        for piece in pieces:
            if sent < len(piece):
                self._link.sendall(memoryview(piece)[sent:])
            sent = max(0, sent - len(piece))

    def _answer(self, request: vsr_frames.Request) -> Sequence[bytes]:
        if request.operation == SEND:
            if not self._batch:
                begin = request.start + METADATA_SIZE + int.from_bytes(self._buffer[256:260], "little")
                self._batch = bytes(self._buffer[begin : request.end])
            body = reply_codec.SENT.write([SentView(0, 0, 0, 0)])
            return [vsr_frames.reply(request, 1, len(body)), body]
        if request.code == Code.POLL_MESSAGES:
            prefix = classic_codec.PREFIX.pack(0, self._per_batch, self._per_batch)
            return [vsr_frames.reply(request, 1, len(prefix) + len(self._batch)), prefix, self._batch]
        return asyncio.run_coroutine_threadsafe(self._ask(request), self._loop).result()

    async def _ask(self, request: vsr_frames.Request) -> Sequence[bytes]:
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._talk.modern(self._buffer, request, answer.set_result)
        found: Sequence[bytes] = await answer
        return found


async def serve(per_batch: int) -> None:
    """Print the port; stop at a line on standard input."""
    with tempfile.TemporaryDirectory() as directory:
        service, loop = Service(Path(directory)), asyncio.get_running_loop()
        await service.start()
        listening = socket.create_server(("127.0.0.1", 0))
        service.machine.listeners["tcp"] = listening.getsockname()

        def accept() -> None:
            while True:
                link, _ = listening.accept()
                talk = Conversation(service, service.connect(TCP, "", Era.V))
                threading.Thread(target=CannedConnection(link, talk, loop, per_batch).run, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        print(listening.getsockname()[1], flush=True)
        await loop.run_in_executor(None, sys.stdin.readline)
        listening.close()
        await service.stop()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
