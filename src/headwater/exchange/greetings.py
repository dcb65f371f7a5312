"""The INFO that this broker sends to clients: a common part, and the fields that differ between clients."""

from headwater.exchange.auth.identity import WEBSOCKET
from headwater.exchange.options import BrokerOptions
from headwater.exchange.session import Session
from headwater.wire.handshake import ServerInfo, encode_info


class Greetings:
    """`info`: the common part; listeners enter their addresses once they are bound."""

    def __init__(self, options: BrokerOptions, info: ServerInfo) -> None:
        self.options = options
        self.info = info
        self.websocket_address = ("", 0)

    def first(self, session: Session) -> bytes:
        """The first INFO of a connection."""
        return encode_info(self._info_for(session))

    def after_login(self, session: Session) -> bytes:
        """The INFO after a client's first PONG, which names the account."""
        account = session.membership.account
        return encode_info(
            self._info_for(session).replace(
                connect_info=True,
                auth_required=session.login.gate.required,  # nats-server hides it in the first INFO only
                remote_account=account.name if account is not None else "",
                acc_is_sys=account is not None and account.is_system,
            )
        )

    def lame_duck(self, session: Session) -> bytes:
        """The INFO that sends one client to another server."""
        return encode_info(self._info_for(session).replace(ldm=True))

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
