"""Clients of one router without sockets: what they send goes to their sessions, what they get stays in their links."""

from collections.abc import Callable

from support.fake_link import FakeLink

from headwater.authorization.callout import Question
from headwater.authorization.gate import Gate
from headwater.authorization.identity import Lookup, PasswordCheck, Verdict, shown_in
from headwater.exchange.accounts import Accounts
from headwater.exchange.session import Session
from headwater.exchange.sublist import Outlet
from headwater.options.access import GLOBAL_ACCOUNT, SYSTEM_ACCOUNT
from headwater.options.broker import BrokerOptions
from headwater.wire.handshake import ConnectOptions, ServerInfo, encode_info

PLAIN = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"protocol":1}\r\n'


class Register:
    """What a session needs from the broker's register of sessions."""

    def __init__(self, options: BrokerOptions, accounts: Accounts) -> None:
        self.options = options
        self.members: list[Session] = []
        self.accounts = accounts
        self.gate = Gate(options)
        self.now = 1.0
        self.room = 10
        self.forgotten: list[Session] = []
        self.checks: list[PasswordCheck] = []
        self.noted: list[str] = []

    def admit(self, session: Session) -> bool:
        self.room -= 1
        return self.room >= 0

    def trace(self, session: Session) -> None:
        pass

    def forget(self, session: Session) -> None:
        self.forgotten.append(session)

    def greeting(self, session: Session) -> bytes:
        return encode_info(ServerInfo(headers=True))

    def introduction(self, session: Session) -> bytes:
        return encode_info(ServerInfo(connect_info=True))

    def judge(self, session: Session, options: ConnectOptions) -> Verdict:
        return self.gate.decide(shown_in(options, nonce=session.login.nonce), 0.0)

    def admitted(self, session: Session) -> None:
        self.members.append(session)

    def decide_later(self, session: Session, verdict: PasswordCheck | Lookup | Question) -> None:
        assert session.link is not None
        assert isinstance(verdict, PasswordCheck)
        session.link.pause_reading()
        self.checks.append(verdict)

    def note(self, session: Session, kind: str, *, log: bool = True, **fields: object) -> None:
        self.noted.append(kind)

    def note_refused_login(self, session: Session, reason: str) -> None:
        self.noted.append("login_failed")

    def clock(self) -> float:
        return self.now

    def hold_back(self, publisher: Session, congested: list[Outlet]) -> None:
        raise AssertionError("nobody is congested here")


class Desk:
    """A router, a register, and clients that send them bytes."""

    def __init__(self, **options: object) -> None:
        self.scheduled: list[Callable[[], None]] = []
        accounts = Accounts([], SYSTEM_ACCOUNT, lambda function: self.scheduled.append(function), 1 << 20)
        self.router = accounts[GLOBAL_ACCOUNT].router
        self.register = Register(BrokerOptions(**options), accounts)  # type: ignore[arg-type]

    def connect(self, first: bytes = PLAIN) -> tuple[Session, FakeLink]:
        session, link = Session(self.register, self.router, self.register.gate), FakeLink()  # type: ignore[arg-type]
        session.attach(link)  # type: ignore[arg-type]
        self.feed(session, first)
        link.take_flushed()
        return session, link

    def feed(self, session: Session, data: bytes) -> None:
        assert session.receive(bytearray(data), len(data)) == len(data)
        scheduled, self.scheduled = self.scheduled, []
        for function in scheduled:
            function()

    def ask(self, data: bytes, first: bytes = PLAIN) -> bytes:
        """The answer to one client's `data`."""
        session, link = self.connect(first)
        self.feed(session, data)
        return link.take_flushed()
