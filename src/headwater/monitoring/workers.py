"""The figures of one worker of `serve --workers`, for the board that all share (board.py), and /workersz, which shows it."""

import asyncio
import logging
import os
import time
from typing import TYPE_CHECKING

from headwater.monitoring.board import STREAM_FIELDS, Board
from headwater.monitoring.ledger import Totals
from headwater.monitoring.stream_figures import stream_figures
from headwater.monitoring.view import View, resident_bytes

if TYPE_CHECKING:
    from headwater.exchange.session import Session
    from headwater.exchange.sessions import Sessions
    from headwater.wire.handshake import ConnectOptions

logger = logging.getLogger(__name__)

EVERY = 2.0  # seconds between two lines
LOOKED_AT = 1000  # clients in one turn of the loop


class Figures:
    """Takes the line of one worker; `take` is to be called every EVERY seconds or so."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._cpu = (time.process_time(), time.monotonic())

    async def take(self) -> list[float]:
        """A number for each of FIELDS and STREAM_FIELDS. Clients are counted a part in each turn of the loop."""
        view = self._view
        sums = view.ledger.totals(())
        sessions = view.sessions()
        for at in range(0, len(sessions), LOOKED_AT):
            _add(sums, sessions[at : at + LOOKED_AT])
            await asyncio.sleep(0)
        used, now = time.process_time(), time.monotonic()
        before, self._cpu = self._cpu, (used, now)
        register, streams = view.broker.sessions, stream_figures(view.broker.jetstreams.values())
        return [
            os.getpid(),
            time.time_ns() // 1_000_000,
            1,
            len(sessions),
            view.subscriptions(),
            sums.in_messages,
            sums.in_bytes,
            sums.out_messages,
            sums.out_bytes,
            register.watch.slow_consumers if register is not None else 0,
            round(100 * (used - before[0]) / max(now - before[1], 1e-3), 1),
            resident_bytes(),
            *[getattr(streams, name) for name in STREAM_FIELDS],
        ]

    async def keep(self, board: Board, number: int) -> None:
        """Write the line of worker `number` until cancelled."""
        while True:
            try:
                board.write(number, await self.take())
            except Exception:  # a worker that writes no lines passes for one that hangs
                logger.exception("figures_not_taken worker=%d", number)
            await asyncio.sleep(EVERY)


class Seats:
    """An observer of the clients of one worker (`exchange.sessions.Observer`) that counts them on the board: all workers
    together keep to one limit of connections."""

    def __init__(self, register: "Sessions", board: Board, number: int) -> None:
        self._board = board
        self._number = number
        self._clients = len(register.all())
        register.observers.append(self)
        register.watch.elsewhere = lambda: board.seated_elsewhere(number)
        board.seat(number, self._clients)

    def arrived(self, session: "Session") -> None:
        self._change(1)

    def left(self, session: "Session") -> None:
        self._change(-1)

    def introduced(self, session: "Session", options: "ConnectOptions") -> None:
        pass

    def admitted(self, session: "Session") -> None:
        pass

    def _change(self, by: int) -> None:
        self._clients += by
        self._board.seat(self._number, self._clients)


def _add(sums: Totals, sessions: "list[Session]") -> None:
    for session in sessions:
        sums.add(session)


def workersz(view: View) -> dict[str, object]:
    """/workersz: the lines; none where one process does all."""
    return {"server_id": view.broker.server_id, "workers": view.workers.read() if view.workers is not None else []}
