"""/eventz: recent events for operators, newest first, and the count of each kind. nats-server has no such page."""

import time

from headwater.errors import ConfigError
from headwater.model.timestamps import format_time
from headwater.monitoring.ledger import Document
from headwater.monitoring.parameters import Parameters, page
from headwater.monitoring.view import View
from headwater.net.journal import KINDS, MOST_EVENTS

_TIMES = {"time_ns": "time", "last_ns": "last"}


def eventz(view: View, parameters: Parameters) -> Document:
    """The answer, selected by `kind`, `limit` and `offset`. Raises ConfigError for invalid parameters."""
    kind = parameters.get("kind", "")
    if kind and kind not in KINDS:
        raise ConfigError(f"there is no kind of event {kind!r}; there are {', '.join(KINDS)}")
    offset, limit = page(parameters, MOST_EVENTS)
    journal = view.broker.journal
    found = [event for event in reversed(journal.events) if kind in ("", event["kind"])]
    return {
        "server_id": view.broker.server_id,
        "now": format_time(time.time_ns()),
        "counts": dict(journal.counts),
        "total": len(found),
        "offset": offset,
        "limit": limit,
        "events": [_shown(event) for event in found[offset : offset + limit]],
    }


def _shown(event: Document) -> Document:
    return {
        _TIMES.get(name, name): format_time(value) if name in _TIMES and isinstance(value, int) else value
        for name, value in event.items()
        if value != ""
    }
