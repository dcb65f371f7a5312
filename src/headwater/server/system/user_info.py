"""$SYS.REQ.USER.INFO: a client's own name, account and permissions."""

from typing import TYPE_CHECKING

from headwater.server.system.documents import Document

if TYPE_CHECKING:
    from headwater.exchange.session import Session
    from headwater.options.access import SubjectRules

_NS = 1_000_000_000


def user_info(session: "Session") -> Document:
    """User, account, permissions, and the ns until its credentials expire."""
    identity = session.membership.identity
    document: Document = {"user": identity.user, "account": identity.account, "account_name": identity.account}
    document = {name: value for name, value in document.items() if value}
    permissions = identity.rules.source if identity.rules is not None else None
    if permissions is not None:
        shown: Document = {}
        if permissions.publish is not None:
            shown["publish"] = _rules(permissions.publish)
        if permissions.subscribe is not None:
            shown["subscribe"] = _rules(permissions.subscribe)
        if permissions.responses is not None:
            responses = permissions.responses
            shown["responses"] = {"max": responses.max_messages, "ttl": int(responses.expires * _NS)}
        document["permissions"] = shown
    if identity.expires is not None:
        import time

        document["expires"] = max(0, int((identity.expires - time.time()) * _NS))
    return document


def _rules(rules: "SubjectRules") -> Document:
    found: Document = {}
    if rules.allow is not None:
        found["allow"] = list(rules.allow)
    if rules.deny:
        found["deny"] = list(rules.deny)
    return found
