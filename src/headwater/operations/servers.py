"""Requests to all servers of a cluster through the system account; and checks in the format of Nagios.

`ask` sends one request that every server answers. For a user of another account there is no answer, which is an error
with a hint, and not an empty list.
"""

import asyncio
from typing import Any, NamedTuple

import msgspec

from headwater.client.client import Client
from headwater.client.jetstream import JetStream
from headwater.errors import AuthorizationError, NoResponders

OK, WARNING, CRITICAL, UNKNOWN = range(4)
WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
QUIET = 0.3  # seconds without another answer after the first
HINT = "connect as a user of the system account"


class Check(NamedTuple):
    """`state` is the exit status too. `figures`: performance data, by name."""

    name: str
    state: int
    text: str
    figures: dict[str, float]

    def line(self) -> str:
        """As Nagios reads it."""
        data = " ".join(f"{name}={value:g}" for name, value in self.figures.items())
        return f"{WORDS[self.state]} {self.name}: {self.text}{f' | {data}' if data else ''}"


class Limits(NamedTuple):
    """The thresholds above which a figure is a warning or critical; None: no threshold."""

    warning: float | None = None
    critical: float | None = None

    def judge(self, value: float) -> int:
        """The state of a figure."""
        if self.critical is not None and value > self.critical:
            return CRITICAL
        return WARNING if self.warning is not None and value > self.warning else OK


async def ask(client: Client, what: str, timeout: float, body: dict[str, object] | None = None) -> list[dict[str, Any]]:
    """The answers of all servers to `$SYS.REQ.SERVER.<what>`, in the order of their names. Raises AuthorizationError when
    there is none."""
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    found: list[dict[str, Any]] = []
    try:
        await client.publish(f"$SYS.REQ.SERVER.{what}", msgspec.json.encode(body or {}), reply=inbox)
        async with asyncio.timeout(timeout):
            while True:
                message = await subscription.next(QUIET if found else timeout)
                if message.status is not None and not message.data:
                    raise NoResponders("no server answers")
                found.append(msgspec.json.decode(message.data))
    except (TimeoutError, NoResponders):
        pass
    finally:
        await subscription.unsubscribe()
    if not found:
        raise AuthorizationError("no server answers: this user cannot ask them", hint=HINT)
    return sorted(found, key=lambda answer: str(answer["server"].get("name", "")))


def check_connection(round_trip: float, limits: Limits) -> Check:
    """`round_trip` in seconds."""
    state = limits.judge(round_trip)
    return Check("Connection", state, f"round trip of {round_trip * 1000:.2f} ms", {"rtt": round_trip})


async def check_stream(jetstream: JetStream, name: str, *, least: int, most_age: float, lag: Limits) -> Check:
    """Whether a stream has at least `least` messages, its copies are within `lag` messages of their origins, and it was read
    from them within `most_age` seconds (0: whenever)."""
    info = await jetstream.stream_info(name)
    states, remarks = [OK], [f"{info.state.messages} messages"]
    if info.state.messages < least:
        states.append(CRITICAL)
        remarks.append(f"fewer than {least}")
    if info.state.lost is not None:
        states.append(CRITICAL)
        remarks.append(f"{len(info.state.lost.msgs or ())} lost")
    origins = [*([info.mirror] if info.mirror is not None else []), *(info.sources or ())]
    for origin in origins:
        states.append(lag.judge(origin.lag))
        age = origin.active / 1e9
        if most_age and (age < 0 or age > most_age):
            states.append(CRITICAL)
            remarks.append(
                f"nothing from {origin.name} for {age:.0f} s" if age >= 0 else f"{origin.name} was never seen"
            )
    figures = {"messages": info.state.messages, "bytes": info.state.bytes, "consumers": info.state.consumer_count}
    figures |= {"lag": max(origin.lag for origin in origins)} if origins else {}
    return Check(f"Stream {name}", max(states), ", ".join(remarks), {key: float(n) for key, n in figures.items()})


async def check_consumer(jetstream: JetStream, stream: str, name: str, *, pending: Limits, unacked: Limits) -> Check:
    """Whether a consumer keeps up."""
    info = await jetstream.consumer_info(stream, name)
    unacknowledged = float(info.num_ack_pending)
    state = max(pending.judge(info.num_pending), unacked.judge(unacknowledged))
    text = f"{info.num_pending} pending, {info.num_ack_pending} unacknowledged, {info.num_redelivered} redelivered"
    figures = {
        "pending": float(info.num_pending),
        "unacked": unacknowledged,
        "redelivered": float(info.num_redelivered),
    }
    return Check(f"Consumer {stream} > {name}", state, text, figures)


async def check_jetstream(jetstream: JetStream, used: Limits) -> Check:
    """Whether the account has room: `used` in percent of its limits on disk and in memory."""
    info = await jetstream.account_info()
    limits = info.limits
    shares = [
        100 * part / whole
        for part, whole in ((info.storage, limits.max_storage), (info.memory, limits.max_memory))
        if whole > 0
    ]
    most = max(shares, default=0.0)
    text = f"{info.streams} streams, {info.consumers} consumers, {most:.0f} % of the account's limits used"
    figures = {"streams": info.streams, "consumers": info.consumers, "storage": info.storage, "memory": info.memory}
    return Check("JetStream", used.judge(most), text, {**{key: float(n) for key, n in figures.items()}, "used": most})
