"""What is left of a client whose connection has ended: its description, for the requests of it that are still served.

    session ⇄ parser        session ─▶ link ─▶ session        session ─▶ outlet ─▶ link

Reference counts never free such a circle, and the collector looks at old objects rarely (server/garbage.py): a server whose
clients come and go held several times the memory of those that were connected. `release` cuts the circle.
"""

from typing import TYPE_CHECKING, NamedTuple

from headwater.wire.client_ops import ClientOpHandler, ClientOpParser

if TYPE_CHECKING:
    from headwater.exchange.session import Session


class Whereabouts(NamedTuple):
    """The address that a former client had."""

    host: str


class FormerClient:
    """The owner of an ended link, with what `client_info.Client` demands. It discards whatever arrives."""

    def __init__(self, session: "Session") -> None:
        self.client_id = session.client_id
        self.link = Whereabouts(session.link.host if session.link is not None else "")
        self.since = session.since
        self.login = session.login
        self.membership = session.membership
        self.terms = session.terms
        self.heartbeat = session.heartbeat

    def attach(self, link: object) -> None:
        """Never called: the link was attached to the session."""

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Discard input."""
        return filled

    def lost(self, error: Exception | None) -> None:
        """The session has handled it."""


def release(session: "Session") -> None:
    """Cut the circle of an ended session. Not from within a callback of its parser: call it in a turn of its own."""
    link = session.link
    if link is not None:
        link.owner = FormerClient(session)
    session.parser = ClientOpParser(ClientOpHandler(), 0, 0)
    session.parser.stopped = True
