"""The client that sent an API request, as advisories show it: without its credentials."""

import json

from headwater.exchange.client_info import Document, client_info
from headwater.exchange.sublist import Outlet
from headwater.model.header_block import lookup
from headwater.model.request_info import REQUEST_INFO


def requester(publisher: Outlet | None, header_block: bytes, account: str, server: str) -> Document:
    """The client that sent a request. A client of another account or broker is described by the header
    Nats-Request-Info, which only brokers write; without header and client, the document names the account and the
    server."""
    written = lookup(header_block, REQUEST_INFO) if header_block else None
    if written:
        try:
            known = json.loads(written)
        except ValueError:
            known = None
        if isinstance(known, dict):
            return known
    session = getattr(publisher.link, "owner", None) if publisher is not None else None
    if session is None or not hasattr(session, "heartbeat"):
        return {"acc": account, "server": server}
    return client_info(session, account=account, server=server)
