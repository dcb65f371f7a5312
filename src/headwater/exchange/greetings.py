"""The INFO that this broker sends to clients: a common part, and the fields that differ between clients."""

from headwater.authorization.identity import WEBSOCKET
from headwater.exchange.session import Session
from headwater.options.broker import BrokerOptions
from headwater.wire.handshake import ServerInfo, encode_info

_NUMBER = 0x48454144574154  # stands for a client's number: nothing else in an INFO is like it
_ADDRESS = "<address of the client>"  # likewise
_MOST_MADE = 256  # texts of some 500 bytes


class Greetings:
    """`info`: the common part; listeners enter their addresses once they are bound."""

    def __init__(self, options: BrokerOptions, info: ServerInfo) -> None:
        self.options = options
        self.info = info
        self.websocket_address = ("", 0)
        self._made: dict[tuple[object, ...], tuple[bytes, bytes, bytes]] = {}  # text before, between and behind the two
        self._made_of = info, options

    def first(self, session: Session) -> bytes:
        """The first INFO of a connection."""
        return self._encode(session, {})

    def after_login(self, session: Session) -> bytes:
        """The INFO after a client's first PONG, which names the account."""
        account = session.membership.account
        more: dict[str, object] = {
            "connect_info": True,
            "auth_required": session.login.gate.required,  # nats-server hides it in the first INFO only
            "remote_account": account.name if account is not None else "",
            "acc_is_sys": account is not None and account.is_system,
        }
        return self._encode(session, more)

    def lame_duck(self, session: Session) -> bytes:
        """The INFO that sends one client to another server."""
        return encode_info(self._info_for(session).replace(ldm=True))

    def _encode(self, session: Session, more: dict[str, object]) -> bytes:
        """The INFO of a session with other fields. Most clients differ in their number and address alone, so all around
        these is kept."""
        login, link = session.login, session.link
        if login.nonce or link is None or not link.host or login.connection_type == WEBSOCKET:
            return encode_info(self._info_for(session).replace(**more))
        if self._made_of[0] is not self.info or self._made_of[1] is not self.options or len(self._made) > _MOST_MADE:
            self._made.clear()
            self._made_of = self.info, self.options
        key = (login.gate.announced, *more.values())
        parts = self._made.get(key)
        if parts is None:
            marked = self._info_for(session).replace(client_id=_NUMBER, client_ip=_ADDRESS, **more)
            before, _, rest = encode_info(marked).partition(b'"client_id":%d' % _NUMBER)
            between, _, after = rest.partition(b'"%b"' % _ADDRESS.encode())
            parts = self._made[key] = before, between, after
        before, between, after = parts
        return b'%b"client_id":%d%b"%b"%b' % (before, session.client_id, between, link.host.encode(), after)

    def _info_for(self, session: Session) -> ServerInfo:
        websocket = session.login.connection_type == WEBSOCKET
        tls = self.options.websocket.tls if websocket and self.options.websocket else self.options.tls
        where: dict[str, object] = {}
        if websocket:
            host, port = self.websocket_address
            where = {"host": host, "port": port, "connect_urls": self.info.ws_connect_urls}
        return self.info.replace(
            **where,
            ws_connect_urls=(),
            client_id=session.client_id,
            client_ip=session.link.host if session.link is not None else "",
            auth_required=session.login.gate.announced,
            nonce=session.login.nonce,
            tls_required=tls is not None and not tls.allow_non_tls,
            tls_available=tls is not None and tls.allow_non_tls,
            tls_verify=tls is not None and tls.verify,
        )
