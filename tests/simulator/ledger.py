"""Records the promises that a cluster has made, and detects contradictions: each invariant is checked in one place."""

from collections import defaultdict


class Broken(AssertionError):
    """A promise was not kept."""


class Ledger:
    """Every observation of a client is recorded here. Raises `Broken` at the first contradiction."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[int, bytes]] = defaultdict(dict)  # stream -> sequence -> payload that a client saw
        self.acked: dict[str, dict[int, bytes]] = defaultdict(dict)
        self.confirmed: dict[int, float] = {}  # sequence -> when the server confirmed its acknowledgement
        self.group: dict[bytes, str] = {}  # message -> member of the queue group that got it
        self.received: dict[tuple[object, ...], int] = {}
        self.revisions: dict[str, int] = {}  # key -> the newest revision acknowledged to a writer
        self.replaced: dict[tuple[str, int], int] = {}  # key and revision -> the revision that replaced it
        self.batches: set[str] = set()  # committed ones, by name and size
        self.planned: set[bytes] = set()  # payloads of schedules
        self.counts: dict[str, int] = defaultdict(int)

    def ack_came(self, stream: str, sequence: int, payload: bytes) -> None:
        """A publish was acknowledged: it is durable, and the sequence is its own."""
        self.saw(stream, sequence, payload)
        self.acked[stream][sequence] = payload
        self.counts["acknowledged"] += 1

    def saw(self, stream: str, sequence: int, payload: bytes) -> None:
        """A client saw this message: its sequence must never belong to another one."""
        known = self.stored[stream].setdefault(sequence, payload)
        if known != payload:
            raise Broken(f"sequence {sequence} of {stream} was {known!r} and is {payload!r}")
        self.counts["read"] += 1

    def holds(self, stream: str, contents: dict[int, bytes], *, history: bool = True) -> None:
        """Check the final contents of a stream. `history`: no message may be missing."""
        for sequence, payload in contents.items():
            self.saw(stream, sequence, payload)
        lost = {sequence: payload for sequence, payload in self.acked[stream].items() if sequence not in contents}
        if lost and history:
            raise Broken(f"{len(lost)} acknowledged messages of {stream} are lost: {sorted(lost.items())[:5]}")
        order: dict[bytes, int] = {}
        for _, payload in sorted(contents.items()):
            publisher, _, number = payload.partition(b":")
            if history and int(number) <= order.get(publisher, -1):
                raise Broken(f"{payload!r} of {stream} is behind {order[publisher]} of its publisher")
            order[publisher] = int(number)

    def confirm(self, sequence: int, now: float) -> None:
        """The server has confirmed an acknowledgement, which is durable."""
        self.confirmed.setdefault(sequence, now)
        self.counts["confirmed"] += 1

    def fetched(self, sequence: int, requested_at: float) -> None:
        """A consumer delivered this message to a request made at `requested_at`."""
        if self.confirmed.get(sequence, requested_at) < requested_at:
            raise Broken(f"sequence {sequence} came again after its acknowledgement was confirmed")

    def member_got(self, member: str, message: bytes) -> None:
        """A member of the queue group received a message."""
        first = self.group.setdefault(message, member)
        if first != member or self.received.get((member, message)):
            raise Broken(f"{message!r} went to {first} and to {member}")
        self.received[member, message] = 1
        self.counts["queue"] += 1

    def subscriber_got(self, subscriber: str, reconnects: int, message: bytes) -> None:
        """A subscriber received a message of a publisher, on one of its connections."""
        publisher, _, number = message.rpartition(b":")
        key = (subscriber, reconnects, publisher)
        if self.received.get(key, -1) >= int(number):
            raise Broken(f"{subscriber} got {message!r} behind {self.received[key]}")
        self.received[key] = int(number)
        self.counts["core"] += 1

    def key_written(self, key: str, last: int | None, revision: int) -> None:
        """A write of a key was acknowledged; with `last`, it required that this was the newest revision."""
        if last is not None:
            if revision <= last:
                raise Broken(f"{key} went from revision {last} to {revision}")
            taken = self.replaced.setdefault((key, last), revision)
            if taken != revision:
                raise Broken(f"revision {last} of {key} was replaced by {taken} and by {revision}")
        self.revisions[key] = max(self.revisions.get(key, 0), revision)
        self.counts["keys"] += 1

    def key_read(self, key: str, revision: int, promised: int) -> None:
        """A key was read; the read began when revision `promised` had been acknowledged."""
        if revision < promised:
            raise Broken(f"{key} was read at revision {revision} after {promised} was acknowledged")

    def watcher_saw(self, watcher: str, revision: int) -> None:
        """A watch must see revisions in ascending order."""
        if self.received.get((watcher,), 0) >= revision:
            raise Broken(f"{watcher} saw revision {revision} behind {self.received[(watcher,)]}")
        self.received[(watcher,)] = revision
        self.counts["watched"] += 1

    def batch_came(self, batch: str) -> None:
        """The commit of an atomic batch, `<name>/<size>`, was acknowledged."""
        self.batches.add(batch)
        self.counts["batches"] += 1

    def holds_batches(self, contents: dict[int, bytes]) -> None:
        """All that is left of atomic batches: each whole and in one piece, and no committed one is missing."""
        parts: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for sequence, payload in sorted(contents.items()):
            batch, _, part = payload.decode().partition(":")
            parts[batch].append((sequence, int(part)))
        for batch, found in parts.items():
            first, size = found[0][0], int(batch.partition("/")[2])
            if found != [(first + part, part) for part in range(size)]:
                raise Broken(f"of batch {batch} there is {found}")
        if lost := self.batches - set(parts):
            raise Broken(f"committed batches are lost: {sorted(lost)[:5]}")

    def sum_came(self, name: str, total: int, additions: int) -> None:
        """A sum was answered to its only writer, who has added 1 so many times."""
        if total != additions:
            raise Broken(f"{name} is {total} after {additions} additions of 1")
        self.counts["sums"] += 1

    def brought(self, contents: dict[int, bytes]) -> None:
        """What schedules have brought in the end, all of them being due: each once."""
        for payload in self.planned:
            times = list(contents.values()).count(payload)
            if times != 1:
                raise Broken(f"schedule {payload!r} was taken {times} times")
        self.counts["scheduled"] += len(self.planned)

    def is_copy(self, origin: dict[int, bytes], copy: dict[int, bytes]) -> None:
        """A mirror in the end, when nothing is missing at its end."""
        lacking, more = sorted(origin.items() - copy.items()), sorted(copy.items() - origin.items())
        if lacking or more:
            raise Broken(f"the mirror differs: it lacks {lacking[:5]}, and has {more[:5]} beyond its origin")
        self.counts["mirrored"] += len(copy)
