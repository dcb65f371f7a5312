"""Conversations about streams that copy others (`jetstream_conversation.py`): mirrors and sources are made, changed, removed
and promoted, while messages come to the origins, to the copies, and go.

ONE and TWO are origins, WORK is one that removes what is copied; COPY and MORE copy them, or each other. After each step
both servers come to rest ("settle"), and what they store is written down. Two sources of one stream never take the same
message: which of them is first is chance.
"""

import json
import re
from random import Random
from typing import Any

from support.jetstream_requests import API, HOUR, SECOND, Step

ORIGINS = ("ONE", "TWO", "WORK")
COPIES = ("COPY", "MORE")
ALL = (*ORIGINS, *COPIES)
MOMENT = "1999-09-09T09:09:09Z"  # stands for a moment some steps ago
_LISTEN = "re.>"

Config = dict[str, Any]

_SETTINGS: tuple[Config, ...] = (
    {},
    {},
    {},
    {"storage": "memory"},
    {"max_msgs": 3},
    {"max_msgs_per_subject": 1},
    {"max_msgs_per_subject": 2},
    {"max_bytes": 400},
    {"max_age": HOUR},
    {"allow_direct": True},
    {"mirror_direct": True},
    {"mirror_direct": True, "allow_direct": True},
    {"duplicate_window": HOUR},
    {"allow_rollup_hdrs": True},
    {"allow_msg_ttl": True},
    {"deny_delete": True},
    {"deny_purge": True},
    {"description": "a copy"},
    {"no_ack": True},
    {"subject_transform": {"src": "one.>", "dest": "own.>"}},
    {"subject_transform": {"src": "*.a", "dest": "own.{{wildcard(1)}}"}},
    {"subject_transform": {"src": "moved.*.*", "dest": "own.{{partition(3,2)}}.{{wildcard(1)}}"}},
    {"republish": {"src": ">", "dest": "re.>"}},
    {"republish": {"src": "one.>", "dest": "re.>"}},
    {"republish": {"src": "*.a", "dest": "re.{{wildcard(1)}}", "headers_only": True}},
    {"compression": "s2"},
    {"max_consumers": 1},
    {"persist_mode": "async"},
)
_WRONG_SETTINGS: tuple[Config, ...] = (
    {"first_seq": 5},
    {"allow_msg_counter": True},
    {"allow_atomic": True},
    {"allow_batched": True},
    {"allow_msg_schedules": True},
    {"subject_delete_marker_ttl": 2 * SECOND},
    {"max_msg_size": 10},
    {"discard": "new", "max_msgs": 4},
    {"sealed": True},
    {"subjects": ["one.a"]},
    {"subject_transform": {"src": "one..", "dest": "own"}},
    {"duplicate_window": 1},
    {"pedantic": True},
)
_WRONG_SOURCES: tuple[Config, ...] = (
    {"name": "none"},
    {"name": ""},
    {"name": "a.b"},
    {"filter_subject": "one..b"},
    {"filter_subject": "none.x"},
    {"filter_subject": "one.a", "subject_transforms": [{"src": "one.b", "dest": "z"}]},
    {"subject_transforms": [{"src": "one.a", "dest": "z.1"}, {"src": "one.*", "dest": "z.{{wildcard(1)}}"}]},
    {"subject_transforms": [{"src": "one.*", "dest": "z.{{wildcard(2)}}"}]},
    {"subject_transforms": [{"src": "one..", "dest": "z"}]},
    {"external": {"api": "$JS.API", "deliver": ""}},
    {"external": {"api": "", "deliver": ""}},
    {"consumer": {"name": "red"}},
    {"opt_start_seq": 3, "opt_start_time": "2020-01-01T00:00:00Z"},
    {"opt_start_time": "noon"},
    {"opt_start_seq": -1},
)


def copy_conversation(seed: int, length: int) -> list[Step]:
    """The steps of this seed, origins made first, all streams deleted in the end."""
    return _CopyTalk(Random(f"copies {seed}"), length).steps(str(seed))


class _CopyTalk:
    """One conversation, and what it has requested by now."""

    def __init__(self, random: Random, length: int) -> None:
        self._random = random
        self._length = length
        self._wild = random.choice((0.0, 0.0, 0.1, 0.25))
        self._has_work = random.random() < 0.35
        retentions = ("limits", "limits", "limits", "limits", "interest", "workqueue")
        self._retention = {name: random.choice(retentions) for name in COPIES}  # a change of it is settled otherwise
        self._created: dict[str, Config] = {}
        self._is_there = False  # COPY, probably
        self._steps: list[Step] = []

    def steps(self, tail: str) -> list[Step]:
        random = self._random
        self._make_origins()
        if random.random() < 0.4:
            self._steps.append(Step("listen", _LISTEN))
        for _ in range(random.randrange(6)):
            self._publish()
        self._copy("COPY")
        makers = (self._publish, self._remove, self._update, self._make, self._change_origin, self._read, self._delete)
        for _ in range(self._length):
            random.choices(makers, (14, 3, 5, 3, 1, 2, 1))[0]()
        settled = [self._settled(step) for step in self._steps]
        ends = [Step("api", f"{API}STREAM.DELETE.{name}") for name in (*COPIES, *ORIGINS)]
        flat = [step for steps in settled for step in steps]
        return [_named(step, tail) for step in (*flat, *ends)]

    def _settled(self, step: Step) -> list[Step]:
        needless = step.kind in ("listen", "direct") or ".INFO." in step.subject or ".GET." in step.subject
        return [step] if needless else [step, Step("settle", " ".join(ALL))]

    def _ask(self, verb: str, name: str, document: Any = None) -> None:
        payload = b"" if document is None else json.dumps(document).encode()
        self._steps.append(Step("api", f"{API}STREAM.{verb}.{name}", payload))

    # ── origins ──

    def _make_origins(self) -> None:
        random = self._random
        for name in ORIGINS[: 3 if self._has_work else 2]:
            config: Config = {"name": name, "subjects": [f"{name.lower()}.>"]}
            if name == "WORK":
                config["retention"] = random.choice(("workqueue", "interest"))
            extra: Config = random.choice(
                (
                    {},
                    {},
                    {"allow_direct": True},
                    {"storage": "memory"},
                    {"allow_msg_ttl": True, "allow_rollup_hdrs": True},
                    {"max_msgs_per_subject": 1},
                    {"first_seq": 7},
                    {"max_msgs": 4},
                    {"allow_atomic": True},
                    {"max_msg_size": 100},
                )
            )
            self._created[name] = {**config, **extra}
            self._ask("CREATE", name, self._created[name])

    def _change_origin(self) -> None:
        name = self._random.choice(ORIGINS[: 3 if self._has_work else 2])
        changes: tuple[Config, ...] = (
            {"description": "changed"},
            {"max_msgs": 2},
            {"max_msgs": -1},
            {"allow_direct": True},
            {"max_msgs_per_subject": 1},
            {"subjects": [f"{name.lower()}.>", f"{name.lower()}2"]},
        )
        self._created[name] = {**self._created[name], **self._random.choice(changes)}
        self._ask("UPDATE", name, self._created[name])

    def _publish(self) -> None:
        random = self._random
        stream = random.choice((*ORIGINS[: 3 if self._has_work else 2], "ONE"))
        subject = f"{stream.lower()}.{random.choice(('a', 'a', 'b', 'a.b', 'c'))}"
        headers: dict[str, str] = {}
        if random.random() < 0.35:
            headers = random.choice(
                (
                    {"Other": "value"},
                    {"Nats-Msg-Id": str(random.randrange(3))},
                    {"Nats-Expected-Stream": stream},
                    {"Nats-TTL": "1h"},
                    {"Nats-Rollup": "sub"},
                    {"Other": "1", "Nats-Msg-Id": "x"},
                    {"nats-thing": "", "A": "b"},
                    {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"},
                    {"Nats-Expected-Last-Sequence": "1"},
                    {"Nats-Stream-Source": "ONE 1 > > one.a"},
                    {"Nats-Incr": "1"},
                    {"Nats-Schedule": "@yearly"},
                )
            )
        if random.random() < 0.12:
            subject = random.choice(("copy.a", "more.a", "moved.one.a"))
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        block = f"NATS/1.0\r\n{lines}\r\n".encode() if lines else b""
        self._steps.append(Step("publish", subject, b"x" * random.choice((0, 1, 2, 5, 30)), block))

    # ── copies ──

    def _make(self) -> None:
        self._copy(self._random.choice(COPIES))

    def _copy(self, name: str) -> None:
        """A copy is made, as a mirror or of sources: one after the other, so that their order is the same everywhere."""
        random = self._random
        config: Config = {"name": name, **random.choice(_SETTINGS), **random.choice(_SETTINGS)}
        if random.random() < self._wild:
            config |= random.choice(_WRONG_SETTINGS)
        origins = self._origins_of(name)
        if random.random() < 0.4:
            config["mirror"] = self._source(random.choice(origins))
            self._request("CREATE", config)
            return
        if random.random() < 0.4:
            config.setdefault("subjects", [f"{name.lower()}.>"])
        sources: list[Config] = []
        for origin in random.sample(origins, random.choice((1, 1, 2))):
            sources = [*sources, self._source(origin)]
            self._request("UPDATE" if len(sources) > 1 else "CREATE", {**config, "sources": sources})

    def _origins_of(self, name: str) -> list[str]:
        origins = ORIGINS[: 3 if self._has_work else 2]
        return [*origins, "COPY"] if name == "MORE" and self._is_there else [*origins]

    def _request(self, verb: str, config: Config) -> None:
        config = {**config, "retention": self._retention[config["name"]]}
        self._is_there |= config["name"] == "COPY"
        self._created[config["name"]] = config
        self._ask(verb, config["name"], config)

    def _source(self, origin: str) -> Config:
        random, low = self._random, origin.lower()
        low = "one" if origin == "COPY" else low
        source: Config = {"name": origin}
        choice = random.random()
        if choice < 0.3:
            source["filter_subject"] = random.choice((f"{low}.a", f"{low}.*", f"{low}.>", "*.a", f"{low}.a.b"))
        elif choice < 0.55:
            source["subject_transforms"] = random.choice(
                (
                    [{"src": f"{low}.a", "dest": f"moved.{low}.a"}],
                    [{"src": f"{low}.*", "dest": f"moved.{low}.{{{{wildcard(1)}}}}"}],
                    [{"src": f"{low}.>", "dest": "deep.>"}],
                    [{"src": f"{low}.a", "dest": "moved.x.y"}, {"src": f"{low}.b", "dest": ""}],
                    [{"src": f"{low}.a.>", "dest": ""}],
                    [{"src": ">", "dest": f"all.{low}.>"}],
                    [{"src": f"{low}.*", "dest": "p.{{partition(5,1)}}.{{left(1,1)}}"}],
                )
            )
        if random.random() < 0.2:
            source["opt_start_seq"] = random.choice((1, 2, 4, 9, 100)) if origin != "WORK" else 1
        elif random.random() < 0.2:
            source["opt_start_time"] = random.choice(("2020-01-01T00:00:00Z", MOMENT, MOMENT, "2100-01-01T00:00:00Z"))
        if random.random() < self._wild:
            source |= random.choice(_WRONG_SOURCES)
        return source

    def _update(self) -> None:
        random, name = self._random, self._random.choice(COPIES)
        config = dict(self._created.get(name, {"name": name, "subjects": [f"{name.lower()}.>"]}))
        choice = random.random()
        if choice < 0.35 and config.get("sources"):
            config["sources"] = self._other_sources(config["sources"], name)
        elif choice < 0.5 and "mirror" in config:
            del config["mirror"]
            config["subjects"] = [f"{name.lower()}.>"]
        elif choice < 0.6 and "mirror" in config:
            config["mirror"] = self._source(random.choice(self._origins_of(name)))
        elif choice < 0.65:
            config["mirror"] = self._source(random.choice(self._origins_of(name)))
        else:
            config |= random.choice(_SETTINGS)
            if random.random() < self._wild:
                config |= random.choice(_WRONG_SETTINGS)
        self._ask("UPDATE", name, config)
        if choice < 0.6 or choice >= 0.65:
            self._created[name] = config

    def _other_sources(self, sources: list[Config], name: str) -> list[Config]:
        random = self._random
        choice = random.random()
        if choice < 0.25 and len(sources) > 1:
            return sources[1:]
        if choice < 0.35:
            return [*reversed(sources)]
        free = [origin for origin in self._origins_of(name) if all(origin != source["name"] for source in sources)]
        if choice < 0.75 and free:
            return [*sources, self._source(random.choice(free))]
        return [*sources[:-1], self._source(sources[-1]["name"] or "ONE")]

    def _delete(self) -> None:
        """A copy is deleted; not what the other one copies: its loss is noticed later there than here."""
        self._ask("DELETE", "MORE")
        if self._random.random() < 0.5:
            self._ask("DELETE", "COPY")
            self._is_there = False

    # ── messages go, and are read ──

    def _remove(self) -> None:
        random, name = self._random, self._random.choice((*COPIES, "COPY", "ONE", "TWO"))
        sequence = random.choice((1, 2, 3, 5, 8))
        low = name.lower() if name in ORIGINS else "one"
        verb, document = random.choice(
            (
                ("PURGE", None),
                ("PURGE", {"filter": f"{low}.a"}),
                ("PURGE", {"keep": 2}),
                ("PURGE", {"seq": 1}),
                ("MSG.DELETE", {"seq": sequence}),
                ("MSG.DELETE", {"seq": sequence, "no_erase": True}),
            )
        )
        self._ask(verb, name, document)

    def _read(self) -> None:
        random, name = self._random, self._random.choice((*COPIES, "ONE"))
        document = random.choice(
            ({"seq": random.choice((1, 2, 3, 6))}, {"last_by_subj": "one.a"}, {"next_by_subj": "*.a", "seq": 1})
        )
        payload = json.dumps(document).encode()
        if random.random() < 0.5:
            self._steps.append(Step("direct", f"{API}DIRECT.GET.{name}", payload))
        else:
            self._ask("MSG.GET", name, document)


def _named(step: Step, tail: str) -> Step:
    """With the streams of this seed: nats-server may find the old messages when a stream is made again at once."""
    words = r"\b(" + "|".join(ALL) + r")\b"
    payload, block = (re.sub(words.encode(), rb"\g<1>" + tail.encode(), text) for text in (step.payload, step.block))
    return step._replace(subject=re.sub(words, rf"\g<1>{tail}", step.subject), payload=payload, block=block)
