"""Figures of a broker from its monitoring port, and rates between two readings. Works with any nats-server."""

import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from headwater.errors import ConfigError, TransportError

PATIENCE = 5.0  # seconds for a page
COUNTERS = ("in_msgs", "out_msgs", "in_bytes", "out_bytes")
MOST_CLIENTS = 256


class Look(NamedTuple):
    """The pages at one moment; `at`: seconds of a clock that never steps back."""

    at: float
    varz: dict[str, Any]
    connz: dict[str, Any]
    jsz: dict[str, Any]


def look(url: str, now: float, sort: str = "bytes_to") -> Look:
    """Read the pages below `url`. Blocking. Raises TransportError when nothing answers, ConfigError for what is no
    monitoring port."""
    pages = [
        _page(url, path)
        for path in ("varz", f"connz?auth=1&limit={MOST_CLIENTS}&sort={sort}", "jsz?consumers=1&config=1")
    ]
    return Look(now, *pages)


def _page(url: str, path: str) -> dict[str, Any]:
    if not url.startswith(("http://", "https://")):
        raise ConfigError(
            f"{url!r} is no URL of a monitoring port", value=url, hint="for example http://127.0.0.1:8222"
        )
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/{path}", timeout=PATIENCE) as answer:
            document: dict[str, Any] = json.load(answer)
            return document
    except urllib.error.HTTPError as error:
        raise ConfigError(f"{url} answers {error.code} to /{path.partition('?')[0]}", value=url) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise TransportError(
            f"no monitoring port answers at {url}: {reason}", hint="start the server with -m 8222"
        ) from None


def figures(now: Look, before: Look | None) -> dict[str, Any]:
    """One document for scripts: the server, its rates a second since `before`, clients, streams and consumers."""
    varz, passed = now.varz, now.at - before.at if before is not None else 0.0
    same = before is not None and passed > 0 and before.varz["server_id"] == varz["server_id"]
    rates: dict[str, float] = {}
    if same and before is not None:
        rates = {name: max(0, varz[name] - before.varz[name]) / passed for name in COUNTERS}
    names = (
        "server_id",
        "server_name",
        "version",
        "uptime",
        "cpu",
        "mem",
        "connections",
        "subscriptions",
        "slow_consumers",
    )
    return {
        "server": {name: varz.get(name) for name in (*names, *COUNTERS, "max_connections")},
        "rates": rates,
        "connections": now.connz["connections"],
        "streams": _streams(now, before if same else None, passed),
    }


def _streams(now: Look, before: Look | None, passed: float) -> list[dict[str, Any]]:
    old = {} if before is None else {key: one["state"]["last_seq"] for key, one in _by_name(before).items()}
    found = []
    for (account, name), stream in _by_name(now).items():
        last = stream["state"]["last_seq"]
        written = max(0, last - old[account, name]) / passed if (account, name) in old else None
        consumers = [
            {
                name: one.get(name)
                for name in ("name", "num_pending", "num_ack_pending", "num_redelivered", "num_waiting")
            }
            for one in stream.get("consumer_detail", ())
        ]
        found.append({"account": account, "name": name, **stream["state"], "writes": written, "consumers": consumers})
    return sorted(found, key=lambda one: (-(one["writes"] or 0), -one["bytes"], one["name"]))


def _by_name(look: Look) -> dict[tuple[str, str], dict[str, Any]]:
    accounts = look.jsz.get("account_details") or ()
    return {(one["name"], stream["name"]): stream for one in accounts for stream in one.get("stream_detail") or ()}
