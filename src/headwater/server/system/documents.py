"""The common parts of the system account's messages: their sender and its counters, with nats-server's fields.

Left out of `statsz`: feature_flags, gomaxprocs and the limits of JetStream, which /varz has.
"""

import json
import random
import string
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.model.timestamps import format_time
from headwater.monitoring.varz import jetstream_config, jetstream_stats
from headwater.monitoring.view import ObservableBroker, View, processors, resident_bytes
from headwater.version import COMPATIBLE_VERSION

if TYPE_CHECKING:
    from headwater.exchange.account import Account
    from headwater.monitoring.ledger import Totals

Document = dict[str, object]

_JETSTREAM_FLAG = 1  # of nats-server's capabilities: the server has JetStream
_LETTERS = string.ascii_letters + string.digits


def encode(document: object) -> bytes:
    """The JSON of a document."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogateescape")


class Speaker:
    """This server as the sender of messages, with sequence numbers."""

    def __init__(self, broker: ObservableBroker, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self.clock_ns = clock_ns
        self._broker = broker
        self._sequence = 0

    @property
    def view(self) -> View:
        """The broker as monitoring sees it."""
        return self._broker.observe()

    def server(self) -> Document:
        """The block `server` of a message."""
        self._sequence += 1
        return {**self.identity(), "seq": self._sequence, "time": format_time(self.clock_ns())}

    def identity(self) -> Document:
        """Which server this is."""
        broker = self._broker
        options = broker.options
        document: Document = {
            "name": options.server_name or broker.server_id,
            "host": options.host,
            "id": broker.server_id,
        }
        if broker.sessions is not None and broker.sessions.greetings.info.cluster:
            document["cluster"] = broker.sessions.greetings.info.cluster
        if options.jetstream_domain:
            document["domain"] = options.jetstream_domain
        document["ver"] = COMPATIBLE_VERSION
        document["jetstream"] = options.jetstream
        if options.jetstream:
            document["flags"] = _JETSTREAM_FLAG
        return document

    def event(self, kind: str) -> Document:
        """The head of an event: `kind` as in "io.nats.server.advisory.v1.<kind>"."""
        return {
            "type": f"io.nats.server.advisory.v1.{kind}",
            "id": "".join(random.choices(_LETTERS, k=22)),
            "timestamp": format_time(self.clock_ns()),
            "server": self.server(),
        }

    def statistics(self) -> Document:
        """The block `statsz`: what this server has done so far."""
        view = self.view
        sessions = view.sessions()
        totals = view.ledger.totals(sessions)
        register, accounts = view.broker.sessions, view.broker.accounts
        sent, received = traffic(totals)
        cluster = view.broker.cluster
        document: Document = {
            "start": format_time(view.started),
            "mem": resident_bytes(),
            "cores": processors(),
            "cpu": view.cpu_percent(),
            "connections": len(sessions),
            "total_connections": register.total if register is not None else 0,
            "active_accounts": sum(1 for account in accounts or () if account.connections),
            "subscriptions": view.subscriptions(),
            "sent": sent,
            "sent_to_clients": sent,
            "received": received,
            "received_from_clients": received,
            "slow_consumers": accounts.slow_consumers if accounts is not None else 0,
            "active_servers": 1 + (len(cluster.peers) if cluster is not None else 0),
        }
        if view.broker.jetstreams:
            config = {name: value for name, value in jetstream_config(view).items() if name != "store_dir"}
            document["jetstream"] = {"config": config, "stats": jetstream_stats(view)}
        return document

    def account_statistics(self, account: "Account", connections: int | None = None) -> Document:
        """The statistics of an account's clients; `connections`: their number, if that is just changing."""
        from headwater.monitoring.interest import statistics_of

        document = statistics_of(self.view, account)
        if connections is not None:
            document["conns"] = document["total_conns"] = connections
        return document


def traffic(totals: "Totals") -> tuple[Document, Document]:
    """What was sent to clients and received from them."""
    return (
        {"msgs": totals.out_messages, "bytes": totals.out_bytes},
        {"msgs": totals.in_messages, "bytes": totals.in_bytes},
    )
