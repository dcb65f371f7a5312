"""What is sent through every crossing, what a reader says of it, and how the two are compared.

A message is known by its tag, `<way in>@<stream>/<number>`, with which its payload begins; where a reader has no payload
(keys of a bucket) or the payload is empty, by its subject. Its header lines are chosen for what crossings lose first: a name
twice with another between, two names that differ in case only, text that is not ASCII, an empty value.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

Pairs = tuple[tuple[str, str], ...]

RICH: Pairs = (
    ("Alpha", "first"),
    ("beta", "words: and a colon"),
    ("Alpha", "second"),
    ("ALPHA", "other case"),
    ("Text", "grüße ☃ 日本語"),
    ("Empty", ""),
)
SINGLE: Pairs = tuple(dict(RICH).items())  # for clients whose headers are a map: the last value of each name
LARGE = bytes(range(256)) * 160  # 40 kB: several reads of a socket, more than a pipe's worth for a route
PROTOCOL = b"\r\nPUB x 0\r\n\r\n-ERR 'x'\r\nMSG x 1 0\r\n"

ANY = "*"  # as a reply, or the value of a header: whatever the sender or the server made up

_TAG = re.compile(rb"([a-z0-9-]+@[A-Za-z0-9_-]+/\d+) ")


class Sample(NamedTuple):
    """One message to be sent, whatever the way in."""

    number: int
    payload: bytes
    headers: Pairs
    reply: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that went in, as it has to come out. `added`: what plain subscribers see beside its headers."""

    tag: str
    subject: str
    payload: bytes
    headers: Pairs = ()
    reply: str = ""
    added: Pairs = ()


@dataclass(frozen=True, slots=True)
class Got:
    """What a reader says of one message; None where it cannot say (a key has no payload)."""

    subject: str | None
    payload: bytes | None
    headers: Pairs | None = None
    reply: str | None = None
    sequence: int | None = None


def samples(tag: str, headers: Pairs = RICH, *, reply: str = "", empty: bool = True) -> list[Sample]:
    """What a way in sends; `empty`: whether it can send a message without payload."""
    found = [
        Sample(0, f"{tag}/0 ".encode() + PROTOCOL, headers, reply),
        Sample(1, f"{tag}/1 ".encode(), (), reply),
        Sample(2, f"{tag}/2 ".encode() + LARGE, headers[:1], ""),
    ]
    return [*found, Sample(3, b"", headers[:1], "")] if empty else found


class Sorted:
    """Records of one reader by the tag of the message that they are of."""

    def __init__(self, sent: Iterable[Sent], got: Iterable[Got] = ()) -> None:
        self._by_subject = {one.subject: one.tag for one in sent}
        self.of: dict[str, list[Got]] = defaultdict(list)
        self.arrived: list[str] = []  # tags
        for one in got:
            self.add(one)

    def add(self, got: Got) -> None:
        found = _TAG.match(got.payload) if got.payload else None
        tag = found[1].decode() if found else self._by_subject.get(got.subject or "")
        if tag is not None:
            self.of[tag].append(got)
            self.arrived.append(tag)


def problems(
    sent: Sequence[Sent],
    found: Sorted,
    sequences: dict[str, int],
    checked: frozenset[str],
    *,
    is_map: bool = False,
) -> Iterator[str]:
    """What is wrong with what came out, nothing if all is well.

    `sequences` by tag, as the stream has them; `checked` are the parts that this reader shows; `is_map`: of headers of one
    name it has the last only.
    """
    for one in sent:
        records = found.of.get(one.tag, [])
        if len(records) != 1:
            yield f"{one.tag} came {len(records)} times"
        for record in records[:1]:
            yield from _differences(one, record, sequences.get(one.tag), checked, is_map)
    wanted = [one.tag for one in sent]
    arrived = [tag for tag in found.arrived if tag in wanted]
    if "order" in checked and len(arrived) == len(wanted) and arrived != wanted:
        yield f"in another order than they were sent: {arrived}"


def _differences(sent: Sent, got: Got, sequence: int | None, checked: frozenset[str], is_map: bool) -> Iterator[str]:
    added = sent.added if "reply" in checked else ()  # a reader that shows the reply is a plain subscriber
    visible, shown = (*sent.headers, *added), got.headers or ()
    if is_map:
        visible = tuple(dict(visible).items())
    wanted = {
        "subject": sent.subject,
        "payload": sent.payload,
        "headers": tuple(
            pair if pair[1] != ANY else came if came[0] == pair[0] else pair
            for pair, came in zip_longest(visible, shown[: len(visible)], fillvalue=("", ""))
        ),
        "reply": got.reply if sent.reply == ANY else sent.reply,
        "sequence": sequence,
    }
    found = {**{part: getattr(got, part) for part in checked - {"order"}}, "headers": shown}
    for part in sorted(checked - {"order"}):
        if found[part] != wanted[part]:
            yield f"{sent.tag}: {part} is {_short(found[part])}, not {_short(wanted[part])}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:200]}…"
