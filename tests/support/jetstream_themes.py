"""What a conversation (`jetstream_requests.py`) may be about besides: batches, counters, schedules, priority groups,
changes of filters, push consumers with a listener.

A theme is made anew for each conversation: it remembers which batches it has begun. Left out is what waits for a
clock; the tests named after the features have that.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from support.jetstream_requests import (
    API,
    CONSUMERS,
    FILTERS,
    HEADERS,
    HOUR,
    SUBJECTS,
    Maker,
    Step,
    Theme,
)

_PUSH_SUBJECTS = ("to.x", "to.y")
PIN = "pinned.and.masked.1234"  # in a pull: the pin that was received last


def _block(headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"NATS/1.0\r\n{lines}\r\n".encode() if lines else b""


def _some_headers(random: Random, share: float, *left_out: str) -> dict[str, str]:
    """Few of the others, in a share of the messages."""
    if random.random() >= share:
        return {}
    names = random.sample([name for name in HEADERS if name not in left_out], random.choice((1, 1, 2)))
    return {name: random.choice(HEADERS[name]) for name in names}


def _subject(random: Random) -> str:
    return random.choice(SUBJECTS[:3] if random.random() < 0.9 else SUBJECTS)


def _payload(random: Random) -> bytes:
    return b"x" * random.choice((0, 1, 2, 5, 30))


def _streams_with(features: dict[str, tuple[Any, ...]], random: Random) -> Callable[[Step], Step]:
    """Adds these settings to nearly every configuration of a stream: the same ones throughout a conversation."""
    chosen = {name: random.choice(values) for name, values in features.items()}

    def revise(step: Step) -> Step:
        step = _patient(step)
        if not step.subject.startswith((f"{API}STREAM.CREATE.", f"{API}STREAM.UPDATE.")) or random.random() < 0.04:
            return step
        try:
            document = {**json.loads(step.payload), **chosen}
        except (ValueError, TypeError):
            return step
        return step._replace(payload=json.dumps(document).encode())

    return revise


def _patient(step: Step) -> Step:
    """A consumer that outlives the waits of the conversation."""
    if ".CONSUMER." not in step.subject or ".CREATE." not in step.subject:
        return step
    try:
        document = json.loads(step.payload)
        document["config"].setdefault("inactive_threshold", HOUR)
    except (ValueError, KeyError, TypeError, AttributeError):
        return step
    return step._replace(payload=json.dumps(document).encode())


class _AtomicBatches:
    """Batches that are begun, continued and committed, now and then wrongly."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._made = 0

    def step(self, random: Random, wild: float) -> Step:
        if not self._next or random.random() < 0.1:
            self._made += 1
            self._next[f"b{self._made}"] = 1
        batch = random.choice(tuple(self._next))
        number = self._next[batch]
        self._next[batch] += 1
        headers = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
        if random.random() < 0.3:
            headers["Nats-Batch-Commit"] = random.choice(("1", "1", "1", "eob"))
            del self._next[batch]
        headers |= _some_headers(random, 0.3, "Nats-Batch-Id")
        if random.random() < wild:
            headers[random.choice(("Nats-Batch-Id", "Nats-Batch-Sequence", "Nats-Batch-Commit"))] = random.choice(
                ("", "0", "1", "2", "3", "x", "-1", "eob", "y" * 65)
            )
        if random.random() < wild / 2:
            del headers[random.choice(tuple(headers))]
        return Step("publish", _subject(random), _payload(random), _block(headers))


class _FastBatches:
    """The same of fast-ingest batches, whose reply subjects steer them."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, str]] = {}
        self._made = 0

    def step(self, random: Random, wild: float) -> Step:
        if not self._open or random.random() < 0.1:
            self._made += 1
            gap = random.choice(("ok", "fail"))
            self._open[f"f{self._made}"] = (1, f"{random.choice((1, 2, 3, 10, 500))}.{gap}")
        batch = random.choice(tuple(self._open))
        number, tail = self._open[batch]
        operation = 0 if number == 1 else 1
        choice = random.random()
        if choice < 0.1 and number > 1:
            number, operation = number - 1, 4
        elif choice < 0.3:
            operation = random.choice((2, 2, 3))
        if random.random() < 0.06:
            number += random.choice((1, 2, -1))
        if random.random() < wild:
            operation = random.choice((0, 1, 2, 3, 4, 5))
        if random.random() < wild / 2:
            tail = random.choice(("0.ok", "x.ok", "2.neither", "-1.fail", "5.fail.1"))
        self._open[batch] = (number + 1, tail)
        if operation in (2, 3) and random.random() < 0.9:
            del self._open[batch]
        block = _block(_some_headers(random, 0.25, "Nats-Expected-Last-Msg-Id"))
        return Step("fast", _subject(random), _payload(random), block, reply=f"{batch}.{tail}.{number}.{operation}")


def _count(random: Random, wild: float) -> Step:
    headers = {"Nats-Incr": random.choice(("1", "+2", "-3", "0", "99999999999999999999999999", "0005", " 4"))}
    if random.random() < max(wild, 0.05):
        headers["Nats-Incr"] = random.choice(("", "1.5", "abc", "+-1", "+", "1 2", "0x1"))
    headers |= _some_headers(random, 0.25, "Nats-Incr")
    if random.random() < 0.05:
        del headers["Nats-Incr"]
    return Step("publish", _subject(random), b"x" if random.random() < 0.05 else b"", _block(headers))


_TURNS = (
    "@at 2100-01-01T00:00:00Z",
    "@every 9h",
    "0 30 14 1 1 *",
    "@yearly",
    "@at 2100-01-01T00:00:00+02:00",
    "@midnight",
)
_WRONG_TURNS = (
    "@every 1ms",
    "@every 1h30m",
    "@at",
    "@at noon",
    "0 0 0 32 * *",
    "@never",
    "* * * * *",
    "@every -1s",
    "",
)


def _schedule_headers(random: Random, wild: float, turn: str) -> dict[str, str]:
    headers = {"Nats-Schedule": turn, "Nats-Schedule-Target": random.choice(("one.b", "one.a", "one.a.b", "one.c"))}
    if random.random() < 0.2:
        headers["Nats-Schedule-TTL"] = random.choice(("1h", "never", "2s", "x", "0", "500ms"))
    if random.random() < 0.2:
        headers["Nats-Schedule-Source"] = random.choice(("one.a.b", "one.b", "one.d", "two.a", "one.*"))
    if random.random() < 0.2:
        headers["Nats-Schedule-Rollup"] = random.choice(("sub", "sub", "all", ""))
    if random.random() < 0.1:
        headers["Nats-Schedule-Time-Zone"] = random.choice(("UTC", "Europe/Berlin", "Local", "Mars", "+02:00", ""))
    others = _some_headers(random, max(wild, 0.1))
    if not others.get("Nats-Rollup", "sub"):
        del others["Nats-Rollup"]  # nats-server adds a second one, and heeds the first
    return headers | others


def _schedule(random: Random, wild: float) -> Step:
    turn = random.choice(_WRONG_TURNS) if random.random() < max(wild, 0.05) else random.choice(_TURNS)
    headers = _schedule_headers(random, wild, turn)
    return Step("publish", _subject(random), _payload(random), _block(headers))


def _due(random: Random, wild: float) -> Step:
    """A schedule whose turn is long past: it comes at once."""
    headers = _schedule_headers(random, 0.0, "@at 2020-01-01T00:00:00Z")
    return Step("due", random.choice(SUBJECTS[:3]), _payload(random), _block(headers))


_GROUPS: tuple[list[str] | None, ...] = (["A"], ["A"], ["A", "B"], [], [""], ["a b"], ["x" * 17], None)
_POLICIES = ("overflow", "pinned_client", "prioritized", "none", "zzz")


def _grouped(random: Random) -> Callable[[Step], Step]:
    """Consumers with priority groups."""
    usual = {name: {"priority_groups": ["A"], "priority_policy": random.choice(_POLICIES[:3])} for name in CONSUMERS}

    def revise(step: Step) -> Step:
        if ".CONSUMER." not in step.subject or ".CREATE." not in step.subject:
            return step
        try:
            document = json.loads(step.payload)
            config = document["config"]
            config.setdefault("inactive_threshold", HOUR)
            config.update(usual.get(config.get("name") or config.get("durable_name"), {}))
            config.pop("deliver_subject", None)
            if random.random() < 0.2:
                config["priority_groups"] = random.choice(_GROUPS)
            if random.random() < 0.2:
                config["priority_policy"] = random.choice(_POLICIES)
            if random.random() < 0.1:
                config["priority_timeout"] = random.choice((HOUR, 0, -1))
        except (ValueError, KeyError, TypeError, AttributeError):
            return step
        return step._replace(payload=json.dumps(document).encode())

    return revise


def _grouped_pull(random: Random, wild: float) -> Step:
    where = f"ONE.{random.choice(CONSUMERS)}"
    document: dict[str, Any] = {"batch": random.choice((1, 2, 3)), "no_wait": True, "group": "A"}
    extra: tuple[dict[str, Any], ...] = (
        {"min_pending": random.choice((1, 3, 5, 100))},
        {"min_ack_pending": random.choice((1, 2, 100))},
        {"id": PIN},
        {"id": PIN},
        {"id": "no such pin"},
        {"priority": random.choice((0, 1, 9, 10, -1))},
        {"group": random.choice(("B", "", "C"))},
    )
    for addition in random.sample(extra, random.choice((0, 0, 1, 1, 2))):
        document |= addition
    return Step("pull", f"{API}CONSUMER.MSG.NEXT.{where}", json.dumps(document).encode())


def _unpin(random: Random, wild: float) -> Step:
    body = random.choice((b'{"group":"A"}', b'{"group":"A"}', b'{"group":"C"}', b"{}", b""))
    return Step("api", f"{API}CONSUMER.UNPIN.ONE.{random.choice(CONSUMERS)}", body)


def _pushed(random: Random) -> Callable[[Step], Step]:
    """Consumers with a deliver subject. What depends on the time of a delivery is left out, and so are changes of the
    deliver group: nats-server keeps looking for listeners of the old one."""
    grouped: dict[str, bool] = {}

    def revise(step: Step) -> Step:
        if ".CONSUMER." not in step.subject or ".CREATE." not in step.subject or random.random() < 0.1:
            return step
        try:
            document = json.loads(step.payload)
            config = document["config"]
            for key in ("ack_wait", "backoff", "rate_limit_bps", "max_waiting", "max_batch", "flow_control"):
                config.pop(key, None)
            config["deliver_subject"] = random.choice(_PUSH_SUBJECTS)
            config["inactive_threshold"] = HOUR
            config.pop("deliver_group", None)
            if grouped.setdefault(str(config.get("name", config.get("durable_name"))), random.random() < 0.2):
                config["deliver_group"] = "g"
        except (ValueError, KeyError, TypeError, AttributeError):
            return step
        return step._replace(payload=json.dumps(document).encode())

    return revise


def _listen(random: Random, wild: float) -> Step:
    kind, subject = random.choice(("listen", "listen", "leave")), random.choice(_PUSH_SUBJECTS)
    return Step("listen" if kind == "listen" else "leave", subject, reply=random.choice(("", "", "g")))


def _another_filter(random: Random, wild: float) -> Step:
    """A consumer whose filter is changed, or that is made without its durable name."""
    name = random.choice(CONSUMERS)
    config: dict[str, Any] = {"ack_policy": "explicit", "name": name, **random.choice(FILTERS)}
    if random.random() < 0.7:
        config["durable_name"] = name
    document: dict[str, Any] = {"stream_name": "ONE", "config": config}
    if random.random() < 0.5:
        document["action"] = random.choice(("create", "update"))
    return Step("api", f"{API}CONSUMER.CREATE.ONE.{name}", json.dumps(document).encode())


def _theme(name: str, random: Random) -> Theme:
    makers: tuple[tuple[Maker, float], ...]
    if name == "atomic":
        features: dict[str, tuple[Any, ...]] = {"allow_atomic": (True,), "allow_msg_ttl": (True, False)}
        return Theme(((_AtomicBatches().step, 25),), _streams_with(features, random))
    if name == "fast":
        features = {"allow_batched": (True,), "allow_atomic": (True, False)}
        return Theme(((_FastBatches().step, 25), (_AtomicBatches().step, 2)), _streams_with(features, random))
    if name == "counters":
        features = {"allow_msg_counter": (True,), "allow_atomic": (True, False)}
        return Theme(((_count, 20), (_AtomicBatches().step, 2)), _streams_with(features, random))
    if name == "schedules":
        features = {"allow_msg_schedules": (True,), "allow_msg_ttl": (True, False), "allow_atomic": (True, False)}
        makers = ((_schedule, 12), (_due, 3), (_AtomicBatches().step, 2))
        return Theme(makers, _streams_with(features, random))
    if name == "groups":
        return Theme(((_grouped_pull, 12), (_unpin, 1)), _grouped(random))
    if name == "filters":
        return Theme(((_another_filter, 5),), _patient, filters_change=True)
    return Theme(((_listen, 6),), _pushed(random))


NAMES = ("atomic", "fast", "counters", "schedules", "groups", "filters", "push")


def theme(name: str, seed: int) -> Theme:
    """The theme of a conversation with this seed; "plain" has none."""
    return Theme() if name == "plain" else _theme(name, Random(f"{name} {seed}"))
