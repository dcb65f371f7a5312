"""Services of the system account: requests about the server, answered with nats-server's documents.

    $SYS.REQ.SERVER.PING, $SYS.REQ.SERVER.<id>.STATSZ    counters
    $SYS.REQ.SERVER.PING.<page>, $SYS.REQ.SERVER.<id>.<page>
        IDZ STATSZ VARZ CONNZ SUBSZ ROUTEZ GATEWAYZ LEAFZ ACCOUNTZ JSZ HEALTHZ RAFTZ; PROFILEZ says that it has none
    $SYS.REQ.SERVER.<id>.KICK, .LDM, .RELOAD             end a client, tell it to go, read the configuration again
    $SYS.REQ.ACCOUNT.<account>.<page>                    CONNZ SUBSZ LEAFZ JSZ INFO CONNS STATZ, of one account
    $SYS.REQ.ACCOUNT.PING.STATZ                          of all

Users of other accounts may ask about themselves: $SYS.REQ.USER.INFO, $SYS.REQ.ACCOUNT.PING.STATZ and .CONNZ,
$SYS.REQ.SERVER.PING.CONNZ; these are services that every account imports (exchange/accounts.py), and show
nothing of other accounts.

A request may hold JSON: the options of its page, and a filter (server_name, cluster, host, domain) for the servers that
should answer; the others stay silent. Any other subject has no service here: status 503.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigError
from headwater.model.header_block import lookup
from headwater.model.request_info import REQUEST_INFO
from headwater.monitoring.interest import account_detail, statistics_of
from headwater.monitoring.jsz import account_jsz
from headwater.monitoring.pages import PAGES
from headwater.monitoring.parameters import Parameters
from headwater.monitoring.steps import PIECE, Steps, drive, encoded
from headwater.monitoring.view import View
from headwater.server.system.documents import Document, Speaker, encode
from headwater.server.system.user_info import user_info

if TYPE_CHECKING:
    from headwater.exchange.account import Account
    from headwater.exchange.router import Router

logger = logging.getLogger(__name__)

_PAGES = {"VARZ", "CONNZ", "SUBSZ", "ROUTEZ", "GATEWAYZ", "LEAFZ", "ACCOUNTZ", "JSZ", "HEALTHZ", "IPQUEUESZ"}
_NAMES = {
    "subscriptions": "subs", "subscriptions_detail": "subs", "account": "acc", "filter_subject": "filter_subject",
    "consumer": "consumers", "filter": "queues",
}  # fmt: skip
"""Options of a request that have another name in a query."""
_NUMBERS = {"limit", "offset", "cid"}
_STATES = {0: "open", 1: "closed", 2: "all", "open": "open", "closed": "closed", "all": "all", "any": "all"}
_FILTERS = ("server_name", "cluster", "host", "domain")


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, description: str) -> None:
        self.error = {"code": code, "description": description}
        super().__init__(description)


class NotMeant(Exception):
    """The request is for another server."""


class Services:
    """Answers requests. `reload()` returns the function that reads the configuration again, None if there is none."""

    def __init__(
        self,
        speaker: Speaker,
        router: "Router",
        reload: "Callable[[], Callable[[], asyncio.Future[str]] | None]" = lambda: None,
    ) -> None:
        self._speaker = speaker
        self._router = router
        self._reload = reload

    @property
    def _view(self) -> View:
        return self._speaker.view

    def answer(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        """Answer a request to `$SYS.REQ.…`; False when it names no account or server here."""
        words = subject.decode("utf-8", "surrogateescape").split(".")[2:]
        make = self._find(words, header_block)
        if make is None:
            return False
        if reply:
            drive(self._document_for(make, payload), partial(self._send, reply))
        return True

    def _send(self, reply: bytes, answer: bytes) -> None:
        if answer:
            self._router.publish(reply, b"", b"", answer)

    def _find(self, words: list[str], header_block: bytes) -> Callable[[dict[str, Any]], Document | Steps] | None:
        """The function that builds the answer."""
        kind, rest = words[0], words[1:]
        if kind == "USER" and rest and rest[-1] == "INFO":
            return lambda options: self._user(header_block)
        if kind == "ACCOUNT" and len(rest) >= 2:
            return self._account_service(".".join(rest[:-1]), rest[-1])
        if kind != "SERVER" or not rest or rest[0] not in ("PING", self._view.broker.server_id):
            return None
        if len(rest) == 1:
            return self._statistics if rest[0] == "PING" else None
        if len(rest) != 2:
            return None
        if rest[1] in _PAGES:
            return lambda options: self._page(rest[1], options)
        if rest[1] == "RAFTZ":  # no group of Raft is here
            return lambda options: {"data": {}}
        if rest[1] == "PROFILEZ":
            return self._profile
        if rest[0] != "PING" and rest[1] == "RELOAD":
            return self._read_again
        if rest[0] != "PING" and rest[1] in ("KICK", "LDM"):
            return {"KICK": self._kick, "LDM": self._send_away}[rest[1]]
        return {"STATSZ": self._statistics, "IDZ": self._identity}.get(rest[1])

    def _document_for(self, make: Callable[[dict[str, Any]], Document | Steps], payload: bytes) -> Steps:
        """The answer, in steps if it is large; empty when the request is for another server."""
        try:
            options = _read_options(payload)
            if make != self._identity and not self._is_meant(options):
                return b""
            made = make(options)
            document = made if isinstance(made, dict) else (yield from made)
        except NotMeant:
            return b""
        except Refused as refused:
            document = {"error": refused.error}
        except ConfigError as error:
            document = {"data": None, "error": {"code": 500, "description": error.message}}
        except Exception as error:  # a fault of ours: without an answer the request waits for its timeout
            logger.exception("system_request_failed")
            document = {"data": None, "error": {"code": 500, "description": f"the server failed: {error!r}"}}
        if make == self._identity:
            return encode(document)
        answer = yield from encoded({"server": self._speaker.server(), **document}, encode)
        if len(answer) > PIECE:
            yield  # to publish it is a step of its own
        return answer

    def _is_meant(self, options: dict[str, Any]) -> bool:
        server = self._speaker.identity()
        exact = options.get("exact_match", False)
        for name in _FILTERS:
            wanted = options.get(name)
            if name == "host" and name in options and options.get("account"):
                continue
            if isinstance(wanted, str) and wanted:
                ours = str(server.get("name" if name == "server_name" else name, ""))
                if wanted != ours if exact else wanted not in ours:
                    return False
        return True

    # ── about the server ──

    def _identity(self, options: dict[str, Any]) -> Document:
        server = self._speaker.identity()
        return {name: server[name] for name in ("name", "host", "id")}

    def _statistics(self, options: dict[str, Any]) -> Document:
        return {"statsz": self._speaker.statistics()}

    def _profile(self, options: dict[str, Any]) -> Document:
        return {"data": {"profile": None, "error": "no profiles here: this server is Python, and pprof reads Go's"}}

    def _page(self, name: str, options: dict[str, Any]) -> Steps:
        status, page = PAGES[f"/{name.lower()}"][1](self._view, _parameters(options))
        document = (yield from page) if isinstance(page, Generator) else page
        if name == "HEALTHZ" and isinstance(document, dict):
            document = {**document, "status_code": status}
        return {"data": document}

    # ── about an account ──

    def _account_service(self, name: str, page: str) -> Callable[[dict[str, Any]], Document | Steps] | None:
        if name == "PING":
            return self._all_statistics if page == "STATZ" else None
        if page == "STATZ":
            return lambda options: self._some_statistics([name])
        if page in ("CONNZ", "SUBSZ"):
            return lambda options: self._page(page, {**options, "acc": name, **_all_of(page)})
        if page == "LEAFZ":
            return lambda options: self._page("LEAFZ", {"acc": name})
        makers: dict[str, Callable[[Account], Document]] = {
            "INFO": lambda account: {"data": account_detail(self._view, account)},
            "JSZ": lambda account: {"data": account_jsz(self._view, account.name)},
            "CONNS": lambda account: {
                **self._speaker.event("account_connections"),
                **self._speaker.account_statistics(account),
            },
        }
        if page not in makers:
            return None
        return lambda options: makers[page](self._account(name))

    def _account(self, name: str) -> "Account":
        accounts = self._view.broker.accounts
        for account in accounts or ():
            if account.name == name:
                return account
        raise Refused(500, f'Account "{name}" does not exist')

    def _all_statistics(self, options: dict[str, Any]) -> Document:
        names = options.get("accounts") or [account.name for account in self._view.broker.accounts or ()]
        unused = bool(options.get("include_unused"))
        return self._some_statistics([str(name) for name in names], unused=unused)

    def _some_statistics(self, names: list[str], *, unused: bool = True) -> Document:
        accounts = [
            one for one in self._view.broker.accounts or () if one.name in names and (unused or one.connections)
        ]
        page = PAGES["/accstatz"][1](self._view, {})[1]
        assert isinstance(page, dict)
        return {"data": {**page, "account_statz": [statistics_of(self._view, account) for account in accounts]}}

    # ── about a client ──

    def _user(self, header_block: bytes) -> Document:
        """Describe the requester, identified by the header that only the broker writes."""
        info = json.loads(lookup(header_block, REQUEST_INFO) or b"{}")
        if info.get("server") != self._identity({})["name"]:
            raise NotMeant
        for session in self._view.sessions():
            if session.client_id == info.get("id"):
                return {"data": user_info(session)}
        raise Refused(500, "no such client id")

    def _client(self, options: dict[str, Any], absent: str) -> Any:
        for session in self._view.sessions():
            if session.client_id == options.get("cid"):
                return session
        raise Refused(500, absent)

    def _kick(self, options: dict[str, Any]) -> Document:
        session = self._client(options, "no such client or leafnode id")
        session.end_reason = "Kicked"
        session.link.close()
        return {}

    def _send_away(self, options: dict[str, Any]) -> Document:
        session = self._client(options, "no such client id")
        if self._view.broker.sessions is not None:
            self._view.broker.sessions.send_away(session)
        return {}

    def _read_again(self, options: dict[str, Any]) -> Steps:
        reload = self._reload()
        if reload is None:
            raise Refused(500, "there is no configuration file")
        reading = reload()
        yield reading
        if problem := reading.result():
            raise Refused(500, problem)
        return {}


def _read_options(payload: bytes) -> dict[str, Any]:
    """The JSON of a request."""
    if not payload.strip():
        return {}
    try:
        options = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"invalid JSON: {type(error).__name__}") from None
    if not isinstance(options, dict):
        raise Refused(400, "a request must be a JSON object")
    return options


def _parameters(options: dict[str, Any]) -> Parameters:
    """The options of a page in the form of query parameters."""
    found: Parameters = {}
    for name, value in options.items():
        if name in _NUMBERS and type(value) is not int:
            raise Refused(400, f"{name} must be a number")
        if name == "state":
            found["state"] = _STATES.get(value, str(value))
        elif name == "subscriptions_detail":
            if value:
                found["subs"] = "detail"
        elif value is not None and not isinstance(value, dict | list):
            known = _NAMES.get(name, name)
            found.setdefault(known, str(value).lower() if isinstance(value, bool) else str(value))
    return found


def _all_of(page: str) -> dict[str, Any]:
    """The options that an account's page has by default."""
    return {"subs": True} if page == "SUBSZ" else {}
