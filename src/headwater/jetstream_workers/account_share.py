"""The streams of one account, as one of several workers has them: what the service asks of the others, and they of it.

client ─▶ its worker ─ `passed_on` ─▶ Line ─▶ the owner of the stream ─▶ `JetStream.take` ─▶ the client's inbox
"""

from contextlib import AbstractAsyncContextManager

import msgspec

from headwater.errors import JetStreamError
from headwater.jetstream.service import JetStream
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_room.whole import Elsewhere
from headwater.jetstream_workers.claims import STORAGES, Claim, Claims, Gate
from headwater.jetstream_workers.gathering import Gathering
from headwater.jetstream_workers.line import Line, Reply
from headwater.jetstream_workers.placement import owner_of, stream_in
from headwater.jetstream_workers.usage import AccountUsage

API = len(b"$JS.API.")


class AccountShare:
    """`Others` for one account, and a `Listener` on the line. `token`: the account's on the line; `folder`: its folder in
    the store; `gate`: at the first worker; `usage`: None where limits of bytes hold for each worker alone. To be given the
    service by `serve`."""

    def __init__(self, line: Line, token: str, folder: str, gate: Gate, usage: AccountUsage | None) -> None:
        self._line = line
        self._token = token
        self._folder = folder
        self._gate = gate
        self._usage = usage
        self._service: JetStream | None = None
        self._gathering: Gathering | None = None
        self._claims: Claims | None = None
        self._left = line.count - 1  # workers that can still get the direct get that is being answered

    def serve(self, service: JetStream) -> None:
        """Answer for this service from now on. Raises StorageError for a stream that belongs to another worker."""
        caps = service.caps
        self._service = service
        self._gathering = Gathering(self._line, self._token, self._folder, service)
        self._claims = Claims(
            self._line,
            self._token,
            lambda: (stream.config for stream in service.streams.values()),
            service.registry.captured.overlap,
            caps.reserved if caps is not None else lambda storage: 0,
            self._weight_here,
        )
        service.serve_instead(self._gathering.routes())
        self._line.attach(self._token, self)

    def refresh(self) -> None:
        """Write the bytes of the account's streams into the shared memory."""
        if self._usage is not None:
            for storage in STORAGES:
                self._usage.write(storage, self._weight_here(storage))

    def _weight_here(self, storage: str) -> int:
        if self._service is None:
            return 0
        return sum(stream.weight for stream in self._service.streams.values() if stream.config.storage == storage)

    # ── for the service (`Others`) ──

    def passed_on(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        stream = stream_in(subject)
        if not stream:
            return False
        owner = owner_of(self._folder, stream.decode("utf-8", "replace"), self._line.count)
        if owner == self._line.number:
            return False
        service = self._service
        assert service is not None

        def refuse() -> None:
            service.turn_away(subject, reply, header_block, payload, api_error("worker_away", worker=owner))

        self._line.send_or(owner, self._token, b"API." + subject[API:], reply, header_block, payload, refuse)
        return True

    def seek(self, subject: bytes, reply: bytes, payload: bytes) -> bool:
        """A mirror of another worker may answer for the stream."""
        for left in range(self._left - 1, -1, -1):
            to = (self._line.number + self._left - 1 - left) % self._line.count + 1
            if self._line.send(to, self._token, b"SEEK.%d.%s" % (left, subject[API:]), reply, b"", payload):
                return True
        return False

    def claim(self, config: StreamConfig, old: StreamConfig | None) -> AbstractAsyncContextManager[Elsewhere]:
        assert self._claims is not None
        return self._claims.claim(config, old)

    def stream_made(self, name: str) -> None:
        self._line.notify(self._token, "made", name.encode())

    def has_room(self, storage: str, here: int, size: int, limit: int) -> bool:
        if self._usage is None:
            return here + size <= limit
        fits = here + size + self._usage.elsewhere(storage) <= limit
        self._usage.write(storage, here + size if fits else here)
        return fits

    # ── from other workers (`Listener`) ──

    def on_request(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        assert self._service is not None
        self._service.take(subject, reply, header_block, payload)

    def on_seek(self, left: int, subject: bytes, reply: bytes, payload: bytes) -> None:
        assert self._service is not None
        self._left = left
        try:
            self._service.take(subject, reply, b"", payload)
        finally:
            self._left = self._line.count - 1

    def on_question(self, what: str, payload: bytes) -> Reply:
        assert self._gathering is not None and self._claims is not None
        if what == "claim":
            return self._gate.check(self._token, payload, self._claims.check)
        if what == "check":
            return msgspec.json.encode(self._claims.check(msgspec.json.decode(payload, type=Claim)))
        answer = self._gathering.on_question(what, payload)
        if answer is None:
            raise JetStreamError(500, 10052, f"worker {self._line.number} does not know the question {what}")
        return answer

    def on_notice(self, what: str, payload: bytes) -> None:
        assert self._service is not None
        if what == "made":
            self._service.registry.on_stream_made(payload.decode("utf-8", "replace"))
