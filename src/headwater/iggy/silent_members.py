"""Members of consumer groups that have gone silent: a machine without power, or behind a broken link, leaves its connection
open, and no other member would get the messages of its partitions.

As upstream since 0.9: a member that sends nothing, not even a ping, for 1.2 times the heartbeat interval leaves its
groups, is evicted, and its connection ends. A client in no group is left alone, and so is one whose request
waits for messages. Clients before 0.9 are, too: their servers expected no pings of them.

A client is not judged by a clock but by looks at it, with turns of the loop in between: after a pause of the whole server,
what its clients sent meanwhile is read before the second look.
"""

from collections.abc import Callable
from math import ceil
from typing import Final

from headwater.iggy.clients import Client, Clients
from headwater.iggy_wire.eras import Era

PATIENCE: Final = 1.2  # of a heartbeat interval


class SilentMembers:
    """`heartbeat`: seconds, 0 for any time; `interval`: seconds between two looks. `release(client)` takes it out of its
    groups, `note` reports an event to operators."""

    def __init__(
        self,
        clients: Clients,
        heartbeat: float,
        interval: float,
        release: Callable[[Client], None],
        note: Callable[..., None],
    ) -> None:
        self._clients = clients
        self._seconds = PATIENCE * heartbeat
        self._looks = max(2, ceil(self._seconds / interval))
        self._release = release
        self._note = note
        self._seen: dict[int, tuple[int, int]] = {}  # client: its requests, and looks since they were fewer

    def look(self) -> None:
        """Once in `interval` seconds."""
        before, self._seen = self._seen, {}
        for client in list(self._clients) if self._seconds else ():
            if client.era < Era.V or not client.memberships or client.waiting:
                continue
            requests, looks = before.get(client.id, (-1, 0))
            looks = looks + 1 if client.requests == requests else 0
            if looks < self._looks:
                self._seen[client.id] = client.requests, looks
            else:
                reason = f"a member of a consumer group has sent nothing for {self._seconds:g} s"
                self._note("stale_connection", face="iggy", address=client.address, client=client.id, reason=reason)
                self._release(client)
                client.evict()
