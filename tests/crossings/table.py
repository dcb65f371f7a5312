"""The table of crossings: every way in, every way out, every place, and a verdict for each cell.

    WAYS_IN x WAYS_OUT x PLACES ─▶ IMPOSSIBLE (the first rule that fits says why there is no such cell)
                                └▶ FAILING    (the first that fits says why it does not work yet)
                                └▶ all others run and have to pass

A new way is one row here and one function of the row's key in `ways_in` or `ways_out`; a new place is one row and one
function in `places`. `docs/crossings.md` is written from this table (docs/generate.py), which is why nothing is imported
here but the standard library. A cell that fails is a strict xfail: when it is mended its rule has to go, or the test fails.
A rule that fits no cell fails too (test_table.py).
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

EVENTS = "EVENTS"  # the stream of most ways in
BUCKET = "KV_CROSS"
OBJECTS = "OBJ_CROSS"
TOPIC = "iggy-cross-topic-0"  # a topic of Iggy's own, as JetStream shows it


class WayIn(NamedTuple):
    """How a message enters. `stream`: where it is stored. `marker`: what a test of it needs."""

    key: str
    title: str
    stream: str = EVENTS
    marker: str = ""


class WayOut(NamedTuple):
    """How a message is read. `shows`: the parts that the reader has, and that are compared;
    "order" is that of arrival.

    `only`: the one stream that can be read so. `live`: the reader is there before anything is sent. `is_map`: of headers of
    one name the reader has the last only.
    """

    key: str
    title: str
    shows: frozenset[str]
    only: str = ""
    live: bool = False
    marker: str = ""
    is_map: bool = False


class Place(NamedTuple):
    """Where the stream, the writer and the reader are. `iggy`: whether the Iggy face is beside the stream. `empty`: whether
    messages without payload are sent."""

    key: str
    title: str
    iggy: bool = True
    marker: str = ""
    carries_headers: bool = True
    empty: bool = True


class Rule(NamedTuple):
    """A reason for the cells of these ways and places; an empty tuple stands for all."""

    reason: str
    ways_in: tuple[str, ...] = ()
    ways_out: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    def fits(self, cell: "Cell") -> bool:
        return all(
            not wanted or key in wanted
            for wanted, key in (
                (self.ways_in, cell.way_in.key),
                (self.ways_out, cell.way_out.key),
                (self.places, cell.place.key),
            )
        )


class Cell(NamedTuple):
    way_in: WayIn
    way_out: WayOut
    place: Place

    @property
    def name(self) -> str:
        return f"{self.place.key}-{self.way_in.key}-{self.way_out.key}"

    @property
    def stream(self) -> str:
        """The stream that the message goes through."""
        return self.way_out.only or self.way_in.stream

    @property
    def markers(self) -> set[str]:
        return {row.marker for row in self if row.marker}


WAYS_IN = (
    WayIn("pub", "PUB, by hand"),
    WayIn("hpub", "HPUB, by hand"),
    WayIn("client", "our client: publish"),
    WayIn("jetstream", "our client: JetStream publish"),
    WayIn("publisher", "our client: many in flight"),
    WayIn("nats-py", "nats-py: JetStream publish"),
    WayIn("npm", "npm @nats-io: publish", marker="interop"),
    WayIn("ce-binary", "CloudEvent, binary"),
    WayIn("ce-structured", "CloudEvent, structured"),
    WayIn("republish", "republish of another stream"),
    WayIn("service-import", "service import of another account"),
    WayIn("iggy-s", "Iggy send, crate 0.0.30"),
    WayIn("iggy-a", "Iggy send, iggy-py 0.1"),
    WayIn("iggy-a2", "Iggy send, iggy-py 0.2.0"),
    WayIn("iggy-b", "Iggy send, iggy-py 0.2.3 to 0.4"),
    WayIn("iggy-c1", "Iggy send, apache-iggy 0.5"),
    WayIn("iggy-c2", "Iggy send, apache-iggy 0.6"),
    WayIn("iggy-c3", "Iggy send, apache-iggy 0.7 and 0.8"),
    WayIn("iggy-v", "Iggy send, apache-iggy 0.9"),
    WayIn("iggy-topic", "Iggy send to a topic of Iggy's own", TOPIC),
    WayIn("kv-put", "KV put", BUCKET),
    WayIn("object-put", "object put", OBJECTS),
    WayIn("spark-sink", "Spark sink", marker="spark"),
)

_ORDER = frozenset({"order"})
_STORED = frozenset({"subject", "payload", "headers", "sequence", "order"})
_CORE = frozenset({"subject", "payload", "headers", "reply", "order"})
_ENTRY = frozenset({"subject", "payload", "sequence", "order"})

WAYS_OUT = (
    WayOut("core", "core subscription", _CORE, live=True),
    WayOut("queue", "queue group", _CORE - _ORDER, live=True),
    WayOut("fetch", "pull: fetch", _STORED),
    WayOut("consume", "pull: continuous consume", _STORED, live=True),
    WayOut("push", "push", _STORED, live=True),
    WayOut("queue-push", "push to a queue group", _STORED - _ORDER, live=True),
    WayOut("ordered", "ordered consumer", _STORED),
    WayOut("kv-watch", "KV watch", _ENTRY, BUCKET, live=True),
    WayOut("kv-keys", "KV keys", frozenset({"subject"}), BUCKET),
    WayOut("kv-history", "KV history", _ENTRY, BUCKET),
    WayOut("object-get", "object get", frozenset({"payload"}), OBJECTS),
    WayOut("direct-get", "direct get", _STORED),
    WayOut("msg-get", "MSG.GET", _STORED),
    WayOut("iggy-poll", "Iggy poll", _STORED),
    WayOut("iggy-group", "Iggy consumer group", _STORED, live=True),
    WayOut("spark-batch", "Spark batch", _STORED - _ORDER, marker="spark"),
    WayOut("spark-stream", "Spark stream", _STORED - _ORDER, marker="spark"),
    WayOut("py-core", "nats-py: subscribe", _CORE, live=True, is_map=True),
    WayOut("py-queue", "nats-py: queue group", _CORE - _ORDER, live=True, is_map=True),
    WayOut("py-fetch", "nats-py: fetch", _STORED, is_map=True),
    WayOut("py-push", "nats-py: push", _STORED, live=True, is_map=True),
    WayOut("py-queue-push", "nats-py: push to a queue group", _STORED - _ORDER, live=True, is_map=True),
    WayOut("py-ordered", "nats-py: ordered consumer", _STORED, is_map=True),
    WayOut("py-kv-watch", "nats-py: KV watch", _ENTRY, BUCKET, live=True),
    WayOut("py-kv-keys", "nats-py: KV keys", frozenset({"subject"}), BUCKET),
    WayOut("py-kv-history", "nats-py: KV history", _ENTRY, BUCKET),
    WayOut("py-object-get", "nats-py: object get", frozenset({"payload"}), OBJECTS),
    WayOut("py-direct-get", "nats-py: direct get", _STORED, is_map=True),
    WayOut("py-msg-get", "nats-py: MSG.GET", _STORED - {"headers"}),  # it reads these headers as ASCII
)

# A message without payload or headers ends a streamed response, and with it a pull request that goes by an import.
_APART = "the reader in an account that imports the API and what is delivered (no empty messages)"

PLACES = (
    Place("same", "One node: stream, writer and reader"),
    Place("other", "Three nodes: the stream on one, the writer at another, the reader at the third"),
    Place(
        "v1",
        "The same three nodes with v1 routes: no headers, and no heartbeats, which are headers",
        carries_headers=False,
    ),
    Place("workers", "`--workers 2`: the stream in the first, writer and reader at the second"),
    Place("real-reader", "The stream on ours, writer and reader at a nats-server of its cluster", marker="interop"),
    Place("real-stream", "The stream in a cluster of three nats-servers, writer and reader at ours", False, "interop"),
    Place("tls", "One node, every client over TLS"),
    Place("websocket", "One node, every NATS client over WebSocket"),
    Place("websocket-tls", "One node, every NATS client over WebSocket in TLS"),
    Place("accounts", f"One node: {_APART}", False, empty=False),
    Place("reference", "nats-server alone: the yardstick", False, "interop"),
    Place("reference-accounts", f"nats-server alone, {_APART}: the yardstick", False, "interop", empty=False),
)

_IGGY_IN = tuple(way.key for way in WAYS_IN if way.key.startswith("iggy-"))
_IGGY_OUT = tuple(way.key for way in WAYS_OUT if way.key.startswith("iggy-"))
_BUCKET_OUT = tuple(way.key for way in WAYS_OUT if way.only == BUCKET)
_PY_WATCHES = ("py-kv-watch", "py-kv-keys", "py-kv-history", "py-object-get")
_SPARK_OUT = ("spark-batch", "spark-stream")
_CORE_OUT = ("core", "queue", "py-core", "py-queue")
_APART_PLACES = ("accounts", "reference-accounts")
_WEBSOCKET = ("websocket", "websocket-tls")
_NO_IGGY = "the Iggy face shows the streams of its own node's global account"
_PLACES_WITHOUT_IGGY = tuple(place.key for place in PLACES if not place.iggy)
_PLACES_WITH_IGGY = tuple(place.key for place in PLACES if place.iggy)
_PLACES_OF_NATS = tuple(place.key for place in PLACES if place.iggy and place.key not in ("same", "tls"))

IMPOSSIBLE = (
    Rule(
        "an object is chunks and a document with their digest: only an object put writes both",
        tuple(way.key for way in WAYS_IN if way.key != "object-put"),
        tuple(way.key for way in WAYS_OUT if way.only == OBJECTS),
    ),
    Rule("an object's chunks are in a stream of its store, not under keys of a bucket", ("object-put",), _BUCKET_OUT),
    Rule("a topic of Iggy's own is not a bucket", ("iggy-topic",), _BUCKET_OUT),
    Rule("Iggy stores what is sent to its own topic; nothing is published", ("iggy-topic",), _CORE_OUT),
    Rule(_NO_IGGY, _IGGY_IN, (), _PLACES_WITHOUT_IGGY),
    Rule(_NO_IGGY, (), _IGGY_OUT, _PLACES_WITHOUT_IGGY),
    Rule(_NO_IGGY, ("service-import",), _IGGY_OUT),
    Rule("an Iggy client is always at the stream's own node: as on one node", _IGGY_IN, _IGGY_OUT, _PLACES_OF_NATS),
    Rule(
        "what came by a service import is passed on by no stream import", ("service-import",), _CORE_OUT, _APART_PLACES
    ),
    Rule(
        "a direct get says in headers what it found, and v1 routes carry none",
        (),
        ("direct-get", "py-direct-get"),
        ("v1",),
    ),
    Rule(
        "works, with `jsApi`, and is tested without a session (`tests/spark/test_connections.py`)",
        (),
        _SPARK_OUT,
        _APART_PLACES,
    ),
    Rule("neither end speaks WebSocket: as on one node", (*_IGGY_IN, "spark-sink"), _SPARK_OUT, _WEBSOCKET),
    Rule("neither end speaks WebSocket: as on one node", ("spark-sink",), _IGGY_OUT, _WEBSOCKET),
    Rule("Spark dials no WebSocket: what it reads and writes is in `websocket`", (), _SPARK_OUT, ("websocket-tls",)),
    Rule(
        "Spark dials no WebSocket: what it reads and writes is in `websocket`", ("spark-sink",), (), ("websocket-tls",)
    ),
    Rule(
        "headers of one name: nats-py shows those of the direct get, and not those of the republishing",
        ("republish",),
        ("py-direct-get",),
    ),
    Rule("nats-py's watch listens to an inbox, and accounts export named subjects", (), _PY_WATCHES, _APART_PLACES),
    Rule(
        "nats-py's ordered consumer and its watch ask for heartbeats, which are headers",
        (),
        ("py-ordered", *_PY_WATCHES),
        ("v1",),
    ),
    Rule("v1 routes carry the global account alone", ("service-import",), (), ("v1",)),
)

FAILING: tuple[Rule, ...] = ()


@cache
def cells() -> tuple[Cell, ...]:
    """All of them, those that cannot exist too; by place, then way in, then way out."""
    return tuple(Cell(way_in, way_out, place) for place in PLACES for way_in in WAYS_IN for way_out in WAYS_OUT)


def impossible(cell: Cell) -> str:
    """Why there is no such cell; empty where there is one."""
    return next((rule.reason for rule in IMPOSSIBLE if rule.fits(cell)), "")


def failing(cell: Cell) -> str:
    """Why a cell that exists does not work yet; empty where it has to."""
    return next((rule.reason for rule in FAILING if rule.fits(cell)), "")


def running(place: Place) -> Iterator[Cell]:
    """The cells of a place that exist."""
    return (cell for cell in cells() if cell.place is place and not impossible(cell))
