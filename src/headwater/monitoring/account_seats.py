"""The clients of each account at one worker of `serve --workers`, in memory that all share: a limit of an account on
connections is one for all workers.

It holds as exactly as that of the server (board.py). An account that finds no slot is limited at each worker alone; the log
says so.
"""

import logging
from typing import TYPE_CHECKING

from headwater.jetstream_workers.shared_slots import SharedSlots, key_of

if TYPE_CHECKING:
    from headwater.exchange.session import Session
    from headwater.exchange.sessions import Sessions
    from headwater.wire.handshake import ConnectOptions

logger = logging.getLogger(__name__)

_CLIENTS = 1  # the only number of a slot


def shared_seats(count: int) -> SharedSlots:
    """The memory, for `count` workers."""
    return SharedSlots(count, 0, _CLIENTS)


class AccountSeats:
    """An observer of the clients of worker `number` (`exchange.sessions.Observer`)."""

    def __init__(self, register: "Sessions", slots: SharedSlots, number: int) -> None:
        self._slots = slots
        self._number = number
        self._accounts: dict[int, str] = {}  # by client
        self._keys: dict[str, int] = {}
        self._full = False
        for session in register.all():
            self.admitted(session)
        register.observers.append(self)
        register.accounts.count_with(self.elsewhere)

    def elsewhere(self, account: str) -> int:
        """The clients that an account has at the other workers."""
        return self._slots.elsewhere(self._number, self._key(account), _CLIENTS)

    def arrived(self, session: "Session") -> None:
        pass

    def introduced(self, session: "Session", options: "ConnectOptions") -> None:
        pass

    def admitted(self, session: "Session") -> None:
        self.left(session)
        account = session.membership.account
        if account is not None:
            self._accounts[session.client_id] = account.name
            self._change(account.name, 1)

    def left(self, session: "Session") -> None:
        account = self._accounts.pop(session.client_id, None)
        if account is not None:
            self._change(account, -1)

    def _key(self, account: str) -> int:
        key = self._keys.get(account)
        if key is None:
            key = self._keys[account] = key_of(account)
        return key

    def _change(self, account: str, by: int) -> None:
        try:
            at = self._slots.slot(self._number, self._key(account), make=True)
        except OverflowError as error:
            if not self._full:
                logger.warning("account_limits_not_shared account=%s reason='%s'", account, error)
            self._full = True
        else:
            self._slots.numbers[at + _CLIENTS] += by
