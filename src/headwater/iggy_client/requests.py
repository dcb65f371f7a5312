"""One connection's requests and what their answers mean, without a transport: generation V, for both clients.

write(code, pieces) ─▶ header, numbered ─▶ the transport
the transport ─▶ Reply ─▶ `body_of` ─▶ where the body lies, or the refusal as IggyError
"""

import os
from collections.abc import Sequence
from typing import Final

from headwater.iggy_wire import command_codec, eras, vsr_frames
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import xxh3_64
from headwater.iggy_wire.commands import Code
from headwater.iggy_wire.error_numbers import of_number
from headwater.iggy_wire.vsr_frames import Reply

SDK: Final = "headwater"
VERSION: Final = "0.11.0"
_RESULT_SIZE: Final = 4
_REFUSED_SIZE: Final = 12  # count, index, number


class Requests:
    """The counters of one connection; `login` is the number that the server gave at the log-in, `number` that of the last
    request. Each request has a number of its own, which its answer repeats: upstream's server answers a ping before the
    send in front of it. (Its own clients never have two requests in flight, and number only some.)"""

    def __init__(self) -> None:
        self.login = 0
        self._id = os.urandom(16)
        self.number = 0
        self._count = 0

    def write(self, code: Code, pieces: Sequence[bytes | bytearray]) -> bytes:
        """The header in front of the pieces of a body."""
        if operation_of(code) == command_codec.REGISTER:
            self.number = self.login = 0  # upstream's server drops another log-in that names the one before
        else:
            self._count += 1
            self.number = self._count
        checksum = xxh3_64(b"".join(pieces)) if vsr_frames.needs_checksum(code) else 0
        return vsr_frames.request(code, sum(map(len, pieces)), self._id, self.number, self.login, checksum)


def operation_of(code: Code) -> int:
    """By which operation a command travels."""
    return command_codec.OPERATION_OF.get(code, command_codec.NON_REPLICATED)


def is_replicated(code: Code) -> bool:
    """Whether the command changes something, so that repeating it is not the same as asking once."""
    return operation_of(code) not in (command_codec.NON_REPLICATED, command_codec.REGISTER)


def body_of(reply: Reply, buffer: bytes | bytearray) -> Reply:
    """The answer, narrowed to its body. Raises IggyError for a refusal."""
    if reply.status:
        raise of_number(reply.status)
    if not vsr_frames.has_result_section(reply.operation):
        return reply
    result = bytes(buffer[reply.start : min(reply.start + _REFUSED_SIZE, reply.end)])
    if result[:_RESULT_SIZE] != bytes(_RESULT_SIZE):
        raise of_number(int.from_bytes(result[8:12], "little"))
    return reply._replace(start=reply.start + _RESULT_SIZE)


def login_of(username: str, password: str, token: str) -> c.Login | c.LoginWithToken:
    """How to log in: by a personal access token where there is one."""
    if token:
        return c.LoginWithToken(token, VERSION, "", eras.PROTOCOL, SDK)
    return c.Login(username, password, VERSION, "", eras.PROTOCOL, SDK)
