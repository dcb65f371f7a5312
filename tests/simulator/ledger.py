"""What was promised to whom, and what contradicts it: the invariants of a cluster, one place each."""

from collections import defaultdict


class Broken(AssertionError):
    """A promise was not kept."""


class Ledger:
    """Told of everything that clients hear. Raises `Broken` at the first contradiction."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[int, bytes]] = defaultdict(dict)  # stream -> sequence -> payload that somebody saw
        self.acked: dict[str, dict[int, bytes]] = defaultdict(dict)
        self.confirmed: dict[int, float] = {}  # sequence -> when the server said that it knows of the ack
        self.group: dict[bytes, str] = {}  # message -> member of the queue group that got it
        self.heard: dict[tuple[object, ...], int] = {}
        self.revisions: dict[str, int] = {}  # key -> the newest revision that a writer was promised
        self.replaced: dict[tuple[str, int], int] = {}  # key and revision -> the one that took its place
        self.counts: dict[str, int] = defaultdict(int)

    def ack_came(self, stream: str, sequence: int, payload: bytes) -> None:
        """A publish was acknowledged: it is durable, and the sequence is its own."""
        self.saw(stream, sequence, payload)
        self.acked[stream][sequence] = payload
        self.counts["acknowledged"] += 1

    def saw(self, stream: str, sequence: int, payload: bytes) -> None:
        """A message has this sequence: no other ever has."""
        known = self.stored[stream].setdefault(sequence, payload)
        if known != payload:
            raise Broken(f"sequence {sequence} of {stream} was {known!r} and is {payload!r}")
        self.counts["read"] += 1

    def holds(self, stream: str, contents: dict[int, bytes], *, history: bool = True) -> None:
        """All that a stream holds in the end. `history`: nothing may have left it."""
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
        """The server knows of an acknowledgement, durably."""
        self.confirmed.setdefault(sequence, now)
        self.counts["confirmed"] += 1

    def fetched(self, sequence: int, asked_at: float) -> None:
        """A consumer delivered this upon a request of that moment."""
        if self.confirmed.get(sequence, asked_at) < asked_at:
            raise Broken(f"sequence {sequence} came again after its acknowledgement was confirmed")

    def member_got(self, member: str, message: bytes) -> None:
        """A message for the queue group."""
        first = self.group.setdefault(message, member)
        if first != member or self.heard.get((member, message)):
            raise Broken(f"{message!r} went to {first} and to {member}")
        self.heard[member, message] = 1
        self.counts["queue"] += 1

    def subscriber_got(self, subscriber: str, reconnects: int, message: bytes) -> None:
        """A message of a publisher, over one connection of the subscriber."""
        publisher, _, number = message.rpartition(b":")
        key = (subscriber, reconnects, publisher)
        if self.heard.get(key, -1) >= int(number):
            raise Broken(f"{subscriber} got {message!r} behind {self.heard[key]}")
        self.heard[key] = int(number)
        self.counts["core"] += 1

    def key_written(self, key: str, last: int | None, revision: int) -> None:
        """A write of a key was acknowledged; with `last`, on the condition that this was the newest revision."""
        if last is not None:
            if revision <= last:
                raise Broken(f"{key} went from revision {last} to {revision}")
            taken = self.replaced.setdefault((key, last), revision)
            if taken != revision:
                raise Broken(f"revision {last} of {key} was replaced by {taken} and by {revision}")
        self.revisions[key] = max(self.revisions.get(key, 0), revision)
        self.counts["keys"] += 1

    def key_read(self, key: str, revision: int, promised: int) -> None:
        """A read of the key that was begun when `promised` had been acknowledged."""
        if revision < promised:
            raise Broken(f"{key} was read at revision {revision} after {promised} was acknowledged")

    def watcher_saw(self, watcher: str, revision: int) -> None:
        """A watch is in the order of the revisions."""
        if self.heard.get((watcher,), 0) >= revision:
            raise Broken(f"{watcher} saw revision {revision} behind {self.heard[(watcher,)]}")
        self.heard[(watcher,)] = revision
        self.counts["watched"] += 1
