"""Conversations with a JetStream server, made from a seed: requests about streams and consumers, valid, odd and wrong;
publishes with headers that demand something; pulls and the acks of what they brought.

A conversation is a list of steps that does not depend on what was answered, so that it can be held with two servers.
What is left out is what no two servers can share: times that run out meanwhile, and the features that are refused by
name (docs/jetstream.md).
"""

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any, Literal, NamedTuple

SECOND = 1_000_000_000
HOUR = 3600 * SECOND
API = "$JS.API."
STREAMS = ("ONE", "TWO")
CONSUMERS = ("red", "blue")
SUBJECTS = ("one.a", "one.b", "one.a.b", "two.a", "two.b")
PATTERNS = ("one.>", "one.*", "one.a", "two.>", "two.*", "*.a", ">", "one.b", "one..b", "", "one.a b", "none.x", "*")

FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"filter_subject": "one.>"},
    {"filter_subject": "one.a"},
    {"filter_subject": "*.a"},
    {"filter_subjects": ["one.a", "one.b"]},
    {"filter_subjects": ["one.*"]},
    {"filter_subjects": ["two.>", "one.a.b"]},
)
BROKEN = ("one..b", "one.a b", ["one.*", "one.a"], ["one.a", ""], ["one.a", "one.a"], ["one..a"])

Kind = Literal["api", "publish", "fast", "due", "pull", "ack", "direct", "listen", "leave", "settle"]


class Step(NamedTuple):
    """`subject`, or of an ack `stream.consumer`; `block`: of headers. `which`: of the deliveries is acked. `reply`: the end
    of the reply subject of a message of a fast-ingest batch; of "listen" the queue group."""

    kind: Kind
    subject: str
    payload: bytes = b""
    block: bytes = b""
    which: int = 0
    reply: str = ""


Maker = Callable[[Random, float], Step]


class Theme(NamedTuple):
    """What a conversation is about besides: steps of its own with their weights, and what it does to every step."""

    makers: tuple[tuple[Maker, float], ...] = ()
    revise: Callable[[Step], Step] = lambda step: step
    filters_change: bool = False


WRONG: tuple[Any, ...] = (
    "",
    "x",
    -1,
    1,
    1.5,
    True,
    [],
    {},
    ["x"],
    {"x": 1},
    1 << 62,
    1 << 64,
    -(1 << 63),
    "é",
    "*",
    ">",
    "a.b",
)

_LIMITS = (-2, -1, 0, 1, 2, 3, 5, 100)

STREAM_FIELDS: dict[str, tuple[Any, ...]] = {
    "description": ("", "words", "x" * 4096, "x" * 4097),
    "retention": ("limits", "interest", "workqueue", "Limits"),
    "max_consumers": (-1, 0, 1, 2, -5),
    "max_msgs": _LIMITS,
    "max_bytes": (-1, 0, 100, 150, 1000),
    "max_age": (0, HOUR, 24 * HOUR, 1, SECOND // 20, -1),
    "max_msgs_per_subject": _LIMITS,
    "max_msg_size": (-1, 0, 1, 5, 20, 1000),
    "discard": ("old", "new", "neither"),
    "storage": ("file", "memory", "cloud"),
    "num_replicas": (0, 1, 2, 3, 5, 6, -1),
    "no_ack": (False, True),
    "duplicate_window": (0, SECOND, HOUR, 2 * HOUR, 1, SECOND // 20, -1),
    "first_seq": (0, 1, 2, 10, 1000),
    "allow_direct": (False, True),
    "discard_new_per_subject": (False, True),
    "sealed": (False, False, False, True),
    "deny_delete": (False, False, True),
    "deny_purge": (False, False, True),
    "allow_rollup_hdrs": (False, True),
    "allow_msg_ttl": (False, True),
    "allow_msg_schedules": (False, True, True),
    "subject_delete_marker_ttl": (0, 2 * HOUR, 2 * HOUR, SECOND // 2, -1),
    "consumer_limits": (
        {},
        {"max_ack_pending": 5},
        {"inactive_threshold": HOUR},
        {"max_ack_pending": -1},
        {"inactive_threshold": -1},
    ),
    "metadata": ({}, {"a": "b"}, {"_nats.x": "y"}, {"_nats.req.level": "9"}),
    "republish": (
        None,
        {"src": "one.>", "dest": "re.>"},
        {"src": "one.*", "dest": "re.{{wildcard(1)}}"},
        {"dest": "re.>"},
        {"src": ">", "dest": "one.>"},
        {"src": "one.*", "dest": "x"},
        {"src": "one.a", "dest": "re.a", "headers_only": True},
    ),
    "placement": (None, {}, {"cluster": "x"}, {"tags": ["t"]}),
    "compression": ("none",),
    "pedantic": (False, True),
}

CONSUMER_FIELDS: dict[str, tuple[Any, ...]] = {
    "description": ("", "words", "x" * 4097),
    "deliver_policy": ("all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject", "first"),
    "opt_start_seq": (0, 1, 2, 5, 100),
    "opt_start_time": ("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "2020-01-01T00:00:00.5+01:00", "noon"),
    "ack_policy": ("none", "all", "explicit", "explicit", "maybe"),
    "ack_wait": (0, 30 * SECOND, HOUR, -1),
    "max_deliver": (-1, 0, 1, 2, 3, 5, -3),
    "backoff": ([], [HOUR], [HOUR, 2 * HOUR], [HOUR, 30 * SECOND], [-1]),
    "filter_subject": PATTERNS,
    "filter_subjects": ([], ["one.a"], *(filters for filters in BROKEN if isinstance(filters, list))),
    "replay_policy": ("instant", "instant", "original", "slow"),
    "rate_limit_bps": (0, 1000000),
    "sample_freq": ("", "50", "100%", "x", "-1", "101", "0.5%"),
    "max_waiting": (0, 1, 2, 512, -1),
    "max_ack_pending": (0, 1, 2, 10, -1, -2),
    "flow_control": (False, True),
    "idle_heartbeat": (0, SECOND, HOUR, 1, -1),
    "headers_only": (False, True),
    "max_batch": (0, 1, 2, -1),
    "max_expires": (0, HOUR, 1, -1),
    "max_bytes": (0, 100, -1),
    "deliver_subject": ("", "to.x", "to.y", "to.*", "one.a", "", "to..x", " "),
    "deliver_group": ("", "g", "a b", "g.*"),
    "inactive_threshold": (0, HOUR, -1),
    "num_replicas": (0, 1, 2, 6, -1),
    "mem_storage": (False, True),
    "metadata": ({}, {"a": "b"}, {"_nats.x": "y"}),
    "pause_until": ("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "noon"),
    "priority_groups": ([],),
    "priority_policy": ("none",),
    "durable_name": ("red", "blue", "", "a.b"),
    "name": ("red", "blue", "green", "a/b"),
    "direct": (False, False, True),
}  # fmt: skip

# What is valid by itself: the greater part of the requests is made of these.
_PLAIN_STREAM = (
    "max_msgs", "max_bytes", "max_msgs_per_subject", "discard", "storage", "no_ack", "duplicate_window", "max_age",
    "allow_direct", "allow_rollup_hdrs", "allow_msg_ttl", "retention", "max_msg_size", "discard_new_per_subject",
)  # fmt: skip
_PLAIN_CONSUMER = (
    "deliver_policy", "ack_policy", "filter_subject", "filter_subjects", "max_deliver", "max_ack_pending", "max_waiting",
    "headers_only", "opt_start_seq", "max_batch", "description", "inactive_threshold", "backoff",
)  # fmt: skip

HEADERS: dict[str, tuple[str, ...]] = {
    "Nats-Msg-Id": ("1", "2", "3", "", "é"),
    "Nats-Expected-Stream": ("ONE", "TWO", "NONE", ""),
    "Nats-Expected-Last-Sequence": ("0", "1", "2", "3", "5", "x", "-1", "", "99999999999999999999", " 1", "01"),
    "Nats-Expected-Last-Subject-Sequence": ("0", "1", "2", "3", "4", "x", "-1", ""),
    "Nats-Expected-Last-Subject-Sequence-Subject": ("one.a", "one.>", "one.*", "two.a", "", "one..a"),
    "Nats-Expected-Last-Msg-Id": ("1", "2", "3", "", "x"),
    "Nats-Rollup": ("sub", "all", "", "SUB", "none"),
    "Nats-TTL": ("1h", "never", "3600", "0", "7200", "999ms", "-1", "x", "", "1.5h", "1d"),
    "Nats-Required-Api-Level": ("0", "3", "99", "x"),
    "Other": ("value", ""),
    "nats-msg-id": ("1",),
    "Nats-Incr": ("+1",),
    "Nats-Batch-Id": ("b",),
    "Nats-Schedule": ("@at 2100-01-01T00:00:00Z", "@at 2100-01-01T00:00:00Z", "@yearly", "@every 9h", "x", ""),
    "Nats-Schedule-Target": ("one.b", "one.b", "one.a", "two.a", "one.*", "none.x"),
    "Nats-Schedule-Source": ("one.a.b", "one.b", "none"),
    "Nats-Schedule-TTL": ("1h", "x"),
    "Nats-Schedule-Time-Zone": ("UTC", "x"),
    "Nats-Scheduler": ("one.a", "one.b", "none"),
    "Nats-Schedule-Next": ("purge", "purge", "2100-01-01T00:00:00Z"),
    "Nats-Marker-Reason": ("Purge",),
}  # fmt: skip


def conversation(seed: int, length: int, theme: Theme | None = None) -> list[Step]:
    """The steps of this seed, streams made first and deleted in the end.

    The names of the streams are the seed's own: nats-server may find the old messages when a stream is made again at once.
    """
    random = Random(seed)
    theme = theme or Theme()
    wild = random.choice((0.0, 0.05, 0.2))
    filters = {name: random.choice(FILTERS) for name in CONSUMERS}
    steps = [Step("api", f"{API}STREAM.CREATE.ONE", _make_stream(random, 0.0, "ONE").payload)]
    steps += [_publish(random, 0.0) for _ in range(random.randrange(6))]
    makers, weights = zip(*_MAKERS, *theme.makers, strict=True)
    steps += [random.choices(makers, weights)[0](random, wild) for _ in range(length)]
    if not theme.filters_change:
        steps = [_with_filter(step, filters) for step in steps]
    steps = [theme.revise(step) for step in steps]
    whole = b'{"subjects_filter":">","deleted_details":true}'
    steps += [Step("api", f"{API}STREAM.INFO.{name}", whole) for name in STREAMS]
    steps += [Step("api", f"{API}STREAM.DELETE.{name}") for name in STREAMS]
    return [_named(step, f"{seed}") for step in steps]


def _with_filter(step: Step, filters: dict[str, dict[str, Any]]) -> Step:
    """With the filter of the consumer: nats-server miscounts what is pending once a filter has been changed."""
    if "CONSUMER" not in step.subject or ".CREATE." not in step.subject:
        return step
    try:
        document = json.loads(step.payload)
        config = document["config"]
        name = config.get("name") or config.get("durable_name")
    except (ValueError, KeyError, TypeError, AttributeError):
        return step
    if config.get("filter_subject") in BROKEN or config.get("filter_subjects") in BROKEN:
        return step  # refused
    kept = {key: value for key, value in config.items() if not key.startswith("filter_subject")}
    document["config"] = {**kept, **filters.get(str(name), {})}
    return step._replace(payload=json.dumps(document).encode())


def _named(step: Step, tail: str) -> Step:
    """With the streams of this seed."""
    payload, block = (re.sub(rb"\b(ONE|TWO)\b", rb"\g<1>" + tail.encode(), text) for text in (step.payload, step.block))
    subject, reply = (re.sub(r"\b(ONE|TWO)\b", rf"\g<1>{tail}", text) for text in (step.subject, step.reply))
    return step._replace(subject=subject, payload=payload, block=block, reply=reply)


def _fields(random: Random, table: dict[str, tuple[Any, ...]], plain: tuple[str, ...], wild: float) -> dict[str, Any]:
    """Some settings: few of the usual ones, and where it is wild any, with values of any type."""
    chosen = {name: random.choice(table[name]) for name in random.sample(plain, random.randrange(4))}
    if random.random() < 0.5:
        name = random.choice(tuple(table))
        chosen[name] = random.choice(table[name])
    if random.random() < wild:
        chosen[random.choice(tuple(table))] = random.choice(WRONG)
    if random.random() < wild / 4:
        chosen["unknown"] = random.choice(("", 1, {}))
    return chosen


def _body(random: Random, document: Any, wild: float) -> bytes:
    text = json.dumps(document).encode()
    if random.random() < wild / 4:
        return random.choice(
            (b"", b"null", b"[]", b"1", b"{", text[:-1], text + b"x", b" " + text + b"\n", b'"x"', b"{}")
        )
    return text


def _make_stream(random: Random, wild: float, name: str = "") -> Step:
    name = name or random.choice(("ONE", "ONE", "TWO"))
    verb = "CREATE" if random.random() < 0.4 else "UPDATE"
    subjects: list[Any] = [[f"{name.lower()}.>"], [f"{name.lower()}.>"], [f"{name.lower()}.*", f"{name.lower()}.a.b"]]
    if random.random() < max(wild, 0.02):
        subjects = [
            ["one.a"],
            ["two.a", "one.*"],
            ["one.a", "one.*"],
            [],
            None,
            [""],
            ["a b"],
            [">"],
            ["$JS.API.x"],
            ["a", 1],
            ["*"],
            "x",
        ]
    document = {
        "name": name,
        "subjects": random.choice(subjects),
        **_fields(random, STREAM_FIELDS, _PLAIN_STREAM, wild),
    }
    if random.random() < wild / 3:
        document["name"] = random.choice(WRONG)
    if random.random() < wild / 3:
        document.pop("subjects")
    where = random.choice(("a b", "x/y", "é", "THREE")) if random.random() < wild / 8 else name
    return Step("api", f"{API}STREAM.{verb}.{where.replace(' ', '_')}", _body(random, document, wild))


def _update_stream(random: Random, wild: float) -> Step:
    step = _make_stream(random, max(wild, 0.001))
    return step._replace(subject=step.subject.replace("STREAM.CREATE", "STREAM.UPDATE"))


def _make_consumer(random: Random, wild: float) -> Step:
    stream, name = random.choice(("ONE", "ONE", "ONE", "TWO")), random.choice(CONSUMERS)
    config = {"ack_policy": "explicit", **_fields(random, CONSUMER_FIELDS, _PLAIN_CONSUMER, wild)}
    if random.random() < 0.5:
        config.setdefault("durable_name", name)
    if random.random() < 0.8:
        config.setdefault("name", name)
    document: dict[str, Any] = {"stream_name": stream, "config": config}
    if random.random() < 0.4:
        document["action"] = random.choice(
            ("create", "update", "update", "", "upsert") if random.random() < wild else ("create", "update", "")
        )
    if random.random() < wild / 3:
        document[random.choice(("stream_name", "config", "action", "pedantic"))] = random.choice(WRONG)
    tail = f"CREATE.{stream}.{name}"
    choice = random.random()
    if (
        choice < 0.1
        and (filter_subject := config.get("filter_subject"))
        and isinstance(filter_subject, str)
        and " " not in filter_subject
    ):
        tail += "." + filter_subject
    elif choice < 0.2:
        tail = f"DURABLE.CREATE.{stream}.{name}"
    elif choice < 0.2 + wild / 4:
        tail = f"CREATE.{stream}"
        config["name"] = name  # one that a server makes up would sort differently
    body = _body(random, document, wild)
    return Step("api", f"{API}CONSUMER.{tail}", body)


def _publish(random: Random, wild: float) -> Step:
    lines = b""
    names = random.sample(tuple(HEADERS), random.choice((0, 0, 0, 1, 1, 2, 3)))
    if random.random() < 0.08:
        names = ["Nats-Schedule", "Nats-Schedule-Target", *(name for name in names if "Schedule" in name[:14])]
        names = list(dict.fromkeys(names))
    for name in names:
        lines += b"%s: %s\r\n" % (name.encode(), random.choice(HEADERS[name]).encode())
    block = b"NATS/1.0\r\n" + lines + b"\r\n" if lines else b""
    return Step(
        "publish",
        random.choice(SUBJECTS[:3] if random.random() < 0.8 else SUBJECTS),
        b"x" * random.choice((0, 1, 2, 5, 30)),
        block,
    )


def _about_stream(random: Random, wild: float) -> Step:
    stream = random.choice(STREAMS)
    sequence = random.choice((0, 1, 2, 3, 4, 5, 100))
    requests: list[tuple[str, Any]] = [
        (f"STREAM.INFO.{stream}", None),
        (f"STREAM.INFO.{stream}", {"deleted_details": True}),
        (f"STREAM.INFO.{stream}", {"subjects_filter": random.choice(PATTERNS), "offset": random.choice((0, 1, 5, -1))}),
        ("STREAM.NAMES", {"subject": random.choice(PATTERNS), "offset": random.choice((0, 1, 5, -1))}),
        ("STREAM.NAMES", None),
        ("STREAM.LIST", {"offset": random.choice((0, 1, 5))}),
        (f"STREAM.PURGE.{stream}", None),
        (f"STREAM.PURGE.{stream}", {"filter": random.choice(PATTERNS[1:3]), "seq": sequence}),
        (f"STREAM.PURGE.{stream}", {"filter": random.choice(PATTERNS), "keep": sequence}),
        (f"STREAM.PURGE.{stream}", {"keep": sequence, "seq": random.choice((0, 0, 1))}),
        (f"STREAM.MSG.DELETE.{stream}", {"seq": sequence, "no_erase": random.choice((True, False))}),
        (f"STREAM.MSG.DELETE.{stream}", {"seq": sequence}),
        (f"STREAM.MSG.GET.{stream}", {"seq": sequence}),
        (f"STREAM.MSG.GET.{stream}", {"last_by_subj": random.choice(PATTERNS)}),
        (f"STREAM.MSG.GET.{stream}", {"next_by_subj": random.choice(PATTERNS), "seq": sequence}),
        (
            f"STREAM.MSG.GET.{stream}",
            {"start_time": random.choice(("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "x"))},
        ),
        (f"STREAM.MSG.GET.{stream}", {"seq": sequence, "last_by_subj": "one.a"}),
        (f"STREAM.MSG.GET.{stream}", {"seq": sequence, "no_hdr": True, "batch": random.choice((0, 1, 2))}),
        (f"CONSUMER.NAMES.{stream}", None),
        (f"CONSUMER.LIST.{stream}", {"offset": random.choice((0, 1, 5))}),
    ]
    subject, document = random.choice(requests)
    if document and "PURGE" not in subject and random.random() < wild / 2:
        document[random.choice(tuple(document))] = random.choice(WRONG)
    return Step("api", API + subject, b"" if document is None else _body(random, document, wild))


def _about_consumer(random: Random, wild: float) -> Step:
    where = f"{random.choice(('ONE', 'ONE', 'ONE', 'TWO'))}.{random.choice(CONSUMERS)}"
    requests: list[tuple[str, Any]] = [
        (f"CONSUMER.INFO.{where}", None),
        (f"CONSUMER.INFO.{where}", None),
        (f"CONSUMER.INFO.{where}", None),
        (f"CONSUMER.PAUSE.{where}", {"pause_until": random.choice(CONSUMER_FIELDS["pause_until"])}),
        (f"CONSUMER.PAUSE.{where}", None),
        (f"CONSUMER.DELETE.{where}", None),
        (f"CONSUMER.RESET.{where}", {"seq": random.choice((0, 1, 2, 5, 100))}),
    ]
    subject, document = random.choice(requests)
    if document and random.random() < wild / 2:
        document[random.choice(tuple(document))] = random.choice(WRONG)
    return Step("api", API + subject, b"" if document is None else _body(random, document, wild))


def _pull(random: Random, wild: float) -> Step:
    where = f"{random.choice(('ONE', 'ONE', 'ONE', 'TWO'))}.{random.choice(CONSUMERS)}"
    document: dict[str, Any] = {"batch": random.choice((1, 2, 3, 10)), "no_wait": True}
    if random.random() < 0.2:
        document |= random.choice(
            (
                {"max_bytes": 50},
                {"max_bytes": 120},
                {"expires": SECOND // 20},
                {"idle_heartbeat": 1},
                {"batch": 0},
                {"batch": -1},
                {"max_bytes": -1},
                {"expires": -1},
            )
        )
    if random.random() < wild / 2:
        document[random.choice((*document, "unknown", "group", "id", "priority", "min_pending"))] = random.choice(WRONG)
    return Step("pull", f"{API}CONSUMER.MSG.NEXT.{where}", _body(random, document, 0.0))


def _ack(random: Random, wild: float) -> Step:
    words = (
        b"",
        b"+ACK",
        b"+ACK",
        b"-NAK",
        b"+TERM",
        b"+TERM because",
        b"+WPI",
        b'-NAK {"delay": 3600000000000}',
        b"-NAK 1h",
        b"+OK",
        b"x",
        b"-NAK x",
    )
    where = f"{random.choice(('ONE', 'ONE', 'ONE', 'TWO'))}.{random.choice(CONSUMERS)}"
    return Step("ack", where, random.choice(words), which=random.randrange(6))


def _direct(random: Random, wild: float) -> Step:
    stream = random.choice(STREAMS)
    sequence = random.choice((0, 1, 2, 3, 5, 100))
    tail = "." + random.choice(SUBJECTS) if random.random() < 0.2 else ""
    document: dict[str, Any] = random.choice(
        (
            {"seq": sequence},
            {"last_by_subj": random.choice(PATTERNS)},
            {"next_by_subj": random.choice(PATTERNS), "seq": sequence},
            {"seq": sequence, "batch": random.choice((1, 3, 10, 0, -1)), "max_bytes": random.choice((0, 100, 1))},
            {"next_by_subj": random.choice(PATTERNS), "seq": sequence, "batch": 3},
            {"multi_last": random.sample(PATTERNS, 2), "up_to_seq": random.choice((0, 2, 4))},
            {"multi_last": [random.choice(PATTERNS)], "batch": random.choice((1, 2))},
            {"start_time": random.choice(("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z")), "batch": 2},
            {"seq": sequence, "no_hdr": True},
            {},
        )
    )
    if document and random.random() < wild / 2:
        document[random.choice(tuple(document))] = random.choice(WRONG)
    return Step(
        "direct",
        f"{API}DIRECT.GET.{stream}{tail}",
        b"" if tail and random.random() < 0.8 else _body(random, document, wild),
    )


_MAKERS: tuple[tuple[Maker, float], ...] = (
    (_publish, 8),
    (_update_stream, 3),
    (_make_stream, 1),
    (_make_consumer, 5),
    (_about_stream, 5),
    (_about_consumer, 3),
    (_pull, 4),
    (_ack, 4),
    (_direct, 2),
)
