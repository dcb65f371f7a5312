"""When links last accepted bytes: whether the other end reads, and for how long it has not."""

from headwater.net.link import Link

GRACE_SECONDS = 0.1  # a client that has read within this time counts as reading: its process may be busy


class Progress:
    """When receivers last accepted bytes, as far as observed."""

    def __init__(self) -> None:
        self._seen: dict[Link, tuple[int, float]] = {}  # bytes accepted, and the time of the last change

    def moved(self, link: Link, now: float) -> bool:
        """Whether the link has accepted bytes since the last call; True at the first."""
        before = self._seen.get(link)
        if before is not None and link.sent <= before[0]:
            return False
        self._seen[link] = (link.sent, now)
        return True

    def moved_lately(self, link: Link, now: float) -> bool:
        """Whether the link has accepted bytes within GRACE_SECONDS."""
        return self.moved(link, now) or now - self._seen[link][1] < GRACE_SECONDS

    def stuck_seconds(self, link: Link, now: float) -> float:
        """Seconds for which the link has accepted none of its pending bytes; 0 if none are pending."""
        if link.pending == 0:
            self._seen.pop(link, None)
            return 0.0
        return 0.0 if self.moved(link, now) else now - self._seen[link][1]

    def end_stuck(self, link: Link | None, now: float, deadline: float) -> bool:
        """Abort the link if it has accepted none of its pending bytes for more than `deadline` seconds; returns whether
        it was aborted.
        """
        if link is None or self.stuck_seconds(link, now) <= deadline:
            return False
        link.abort()
        return True

    def forget(self, link: Link) -> None:
        self._seen.pop(link, None)
