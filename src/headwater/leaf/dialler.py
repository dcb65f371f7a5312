"""Dials the hubs of a broker, again and again until each has been joined, and after each loss.

Which address is next and how long to wait is decided in `remote`, what a connection starts with in `dialling`. The
reason for a failure is in the journal and, while it lasts, in /leafz.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.leaf import handshake
from headwater.leaf.connection import LeafConnection
from headwater.leaf.dialling import check_remote, layer_for
from headwater.leaf.remote import Address, Remote
from headwater.net.random_fraction import random_fraction
from headwater.net.tcp import dial
from headwater.options.leaf import LeafOptions

if TYPE_CHECKING:
    from headwater.net.journal import Journal


MOST_LOGGED = 256  # addresses with a logged reason: a hub that announces ever new ones must not fill the memory


class Dialler:
    """`make(remote)` makes the owner of a connection."""

    def __init__(self, options: LeafOptions, make: Callable[[Remote], LeafConnection], journal: "Journal") -> None:
        self.remotes = [Remote(each, options.reconnect_interval, random_fraction) for each in options.remotes]
        self._make = make
        self._journal = journal
        self._loop = asyncio.get_running_loop()
        self._stopping = False
        self._addresses: dict[LeafConnection, Address] = {}
        self._logged: dict[tuple[Remote, str], str] = {}  # why a hub was not joined at an address, as the log says
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()

    def check(self) -> None:
        """Raise what every dial would raise: ConfigError for unusable files, EnvironmentProblem for a missing package."""
        for remote in self.remotes:
            check_remote(remote.options)

    def start(self) -> None:
        """Dial every hub."""
        for remote in self.remotes:
            self._start_dial(remote)

    def withdraw(self) -> None:
        """Dial no more hubs."""
        self._stopping = True
        for timer in self._timers:
            timer.cancel()

    async def stop(self) -> None:
        """End what is being dialled; after `withdraw`."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def address_of(self, leaf: LeafConnection) -> Address:
        """The address at which a hub was dialled."""
        return self._addresses[leaf]

    def lost(self, leaf: LeafConnection, reason: str) -> None:
        """A connection is gone: if we dialled it, dial its hub again after a while."""
        address = self._addresses.pop(leaf, None)
        if leaf.remote is None or address is None:
            return
        if not leaf.joined:
            self._note_not_joined(leaf.remote, address, reason)
        else:
            self._logged = {key: before for key, before in self._logged.items() if key[0] is not leaf.remote}
        refused = leaf.end_reason.startswith("Authorization Violation")
        leaf.remote.failed(reason, refused=refused, stay_away=handshake.wait_after(leaf.end_reason))
        self._dial_later(leaf.remote)

    def _note_not_joined(self, remote: Remote, address: Address, reason: str) -> None:
        """Record that a hub is not joined. The log has it once for an address and a reason, until the hub was joined."""
        key, shown = (remote, address.shown), address.shown
        known = self._logged.get(key) == reason
        if len(self._logged) >= MOST_LOGGED:
            self._logged.clear()
        self._logged[key] = reason
        self._journal.note(
            "leafnode_not_joined", log=not known, account=remote.options.account, address=shown, reason=reason
        )

    def _start_dial(self, remote: Remote) -> None:
        if self._stopping:
            return
        task = self._loop.create_task(self._dial(remote))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self, remote: Remote) -> None:
        address = remote.next()
        leaf = self._make(remote)
        leaf.websocket = address.is_websocket
        self._addresses[leaf] = address
        try:
            layer = layer_for(remote, address)
            await dial(address.host, address.port, leaf, remote.options.dial_timeout, layer)
        except Exception as error:  # noqa: BLE001  (whatever it is, the log has it, and the hub is dialled again)
            self._addresses.pop(leaf, None)
            reason = str(error) if isinstance(error, HeadwaterError) else repr(error)
            self._note_not_joined(remote, address, reason)
            remote.failed(reason)
            self._dial_later(remote)

    def _dial_later(self, remote: Remote) -> None:
        if self._stopping:
            return

        def run() -> None:
            self._timers.discard(timer)
            self._start_dial(remote)

        timer = self._loop.call_later(remote.wait(), run)
        self._timers.add(timer)
