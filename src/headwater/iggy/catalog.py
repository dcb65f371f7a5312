"""The catalog of streams, topics, partitions, groups and users: plain values, their rules, and their document.

The catalog is one small document, saved durably as a whole before any change of it is acknowledged. Message data and
consumer offsets are stored elsewhere, under a `uid`, a number that is never reused, so that a topic recreated under an
old name never gets the old one's files.

Ids are the numbers that clients use: the lowest free one unless the client chooses. Eras count them from 1 or from 0;
here they are the numbers on the wire, and a server starts at 0 unless its first client counts from 1 (`first_id`).
"""

import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec

from headwater.errors import IggyError
from headwater.iggy_wire.commands import Permissions
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import LONGEST_NAME, Identifier

MAX_PARTITIONS: Final = 1000  # per topic, upstream's limit
NEVER: Final = (1 << 64) - 1
_SEED_NAME = re.compile(r"[\w.\-\s]+")
T = TypeVar("T", "StreamEntry", "TopicEntry", "GroupEntry", "UserEntry")


class GroupEntry(msgspec.Struct):
    """A consumer group. Its members are not stored: they last as long as their connections."""

    id: int
    name: str


class TopicEntry(msgspec.Struct):
    """A topic. `partitions`: the uid of each, in order. `message_expiry` in µs and `max_size` in bytes, 0 for none."""

    id: int
    uid: int
    name: str
    created: int
    partitions: list[int]
    message_expiry: int = 0
    max_size: int = 0
    compression: int = 1
    replication: int = 1
    segment_bytes: int = 0
    options: bytes = b""
    groups: list[GroupEntry] = []


class StreamEntry(msgspec.Struct):
    """A stream of topics. `origin` names the face whose streams it shows (`foreign`); "" for a stream of this face."""

    id: int
    name: str
    created: int
    topics: list[TopicEntry] = []
    options: bytes = b""
    origin: str = ""


class TokenEntry(msgspec.Struct):
    """A personal access token, of which only the hash is kept. `expiry` in µs since 1970, 0 for never."""

    name: str
    digest: bytes
    expiry: int


class UserEntry(msgspec.Struct):
    """A user. `password`: salt and scrypt hash. `status` 1 active, 2 inactive."""

    id: int
    name: str
    password: bytes
    created: int
    status: int = 1
    permissions: Permissions | None = None
    tokens: list[TokenEntry] = []
    options: bytes = b""


class Catalog(msgspec.Struct):
    """The whole document. `identities`: by uid, the 8 random bytes in all files of a partition's log and of a topic's
    offsets; a log of an earlier release gets its entry at the first start."""

    streams: list[StreamEntry] = []
    users: list[UserEntry] = []
    next_uid: int = 1
    next_user: int = 1
    identities: dict[int, bytes] = {}

    def new_uid(self) -> int:
        """A number that was never used before."""
        uid = self.next_uid
        self.next_uid += 1
        return uid

    # ── finding ──

    def stream(self, identifier: Identifier) -> StreamEntry:
        """Raises IggyError when there is none."""
        found = _find(self.streams, identifier)
        if found is None:
            raise _missing("stream", identifier)
        return found

    def topic(self, stream: Identifier, topic: Identifier) -> tuple[StreamEntry, TopicEntry]:
        """Raises IggyError when there is none."""
        inside = self.stream(stream)
        found = _find(inside.topics, topic)
        if found is None:
            raise _missing("topic", topic)
        return inside, found

    def user(self, identifier: Identifier) -> UserEntry:
        """Raises IggyError when there is none."""
        found = _find(self.users, identifier)
        if found is None:
            raise refusal("resource_not_found", f"there is no user {identifier}", identifier.value)
        return found

    def user_with(self, number: int) -> UserEntry | None:
        return next((user for user in self.users if user.id == number), None)

    def encode(self) -> bytes:
        return msgspec.json.encode(self)


def decode(document: bytes) -> Catalog:
    """The inverse of `Catalog.encode`. Raises msgspec.MsgspecError."""
    return msgspec.json.decode(document, type=Catalog)


def group_of(topic: TopicEntry, identifier: Identifier) -> GroupEntry:
    """Raises IggyError when there is none."""
    found = _find(topic.groups, identifier)
    if found is None:
        raise _missing("consumer_group", identifier)
    return found


def _find(entries: Iterable[T], identifier: Identifier) -> T | None:
    wanted = identifier.value
    if isinstance(wanted, int):
        return next((entry for entry in entries if entry.id == wanted), None)
    return next((entry for entry in entries if entry.name == wanted), None)


def _missing(what: str, identifier: Identifier) -> IggyError:
    kind = "id" if isinstance(identifier.value, int) else "name"
    return refusal(f"{what}_{kind}_not_found", f"there is no {what.replace('_', ' ')} {identifier}", identifier.value)


# ── rules for new names and ids ──


def checked_name(name: str, what: str, seed: bool = False) -> str:
    """A name of 1 to 255 bytes; the seed's server allowed few characters, and folded them. Raises IggyError."""
    if not 1 <= len(name.encode()) <= LONGEST_NAME:
        raise refusal(f"invalid_{what}_name", f"a name has 1 to {LONGEST_NAME} bytes", name)
    if not seed:
        return name
    if not _SEED_NAME.fullmatch(name):
        raise refusal(f"invalid_{what}_name", "a name has word characters, dots, dashes and blanks", name)
    return re.sub(r"\s", ".", name.lower())


def free_id(entries: Iterable[Any], wanted: int, what: str, first: int, *, given: bool = False) -> int:
    """`wanted`, or the lowest free id when that is 0. Raises IggyError when it is taken; where ids are `given` by the
    caller, as in the seed, also for 0."""
    taken = {entry.id for entry in entries}
    if given and not wanted:
        raise refusal(f"invalid_{what}_id", "ids begin at 1", wanted)
    if wanted and wanted in taken:
        raise refusal(f"{what}_id_already_exists", f"there is a {what} {wanted}", wanted)
    if wanted:
        return wanted
    return next(number for number in range(first, len(taken) + first + 1) if number not in taken)


def check_free_name(entries: Iterable[Any], name: str, what: str, but: object = None) -> None:
    """Raises IggyError when another entry has this name."""
    if any(entry.name == name and entry is not but for entry in entries):
        raise refusal(f"{what}_name_already_exists", f"there is a {what.replace('_', ' ')} {name!r}", name)


def checked_partitions(count: int, there: int | None = None) -> int:
    """The number of partitions to create. Raises IggyError above the limit; for partitions added to a topic also for
    0."""
    if not (0 if there is None else 1) <= count <= MAX_PARTITIONS - (there or 0):
        raise refusal("too_many_partitions", f"a topic has at most {MAX_PARTITIONS} partitions", count)
    return count


def limit(value: int) -> int:
    """The stored form of an expiry or a size: 0 means the server's default, no limit, and so does the largest u64."""
    return 0 if value == NEVER else value
