"""The options of `format("iggy")`, for reading and for writing, as checked values.

What a topic is read from and to is said as in Spark's Kafka source: `{"orders": {"0": 123, "1": "latest"}}`, by topic and
partition, or one word or one number for all. Secrets are references, as for `format("nats")`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import urlsplit

from headwater.errors import ConfigError
from headwater.spark.option_values import count, instant, listed, lowered, one_of, parsed, seconds, size, truth
from headwater.spark.server_options import resolve

if TYPE_CHECKING:
    import ssl

    from headwater.iggy.blocking import BlockingIggy

Edge = Literal["earliest", "latest"]
Position = Edge | int | datetime
Positions = Position | dict[str, dict[int, Position]]
IncludeHeaders = Literal["map", "typed", "raw", "both", "none"]
Decode = Literal["none", "cloudevents"]
ContentMode = Literal["binary", "structured"]

DEFAULT_PORT = 8090
CONNECT_TIMEOUT = 5.0  # seconds
READ_TIMEOUT = 30.0
FETCH_BATCH = 10_000  # messages of one poll, and at most about 8 MiB of them
BATCH_ROWS = 1_000  # messages of one send

SERVER_NAMES = ("servers", "user", "password", "token", "tls", "tlsCa")
SOURCE_NAMES = (
    "stream",
    "topic",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
    "decode",
    "fetchBatch",
    "readTimeout",
    "maxMessageBytes",
    *SERVER_NAMES,
)
SINK_NAMES = ("stream", "topic", "contentMode", "batchRows", "writeTimeout", *SERVER_NAMES)


@dataclass(frozen=True, slots=True)
class IggyServer:
    """Whom to connect to; `password` and `token` are references."""

    addresses: tuple[tuple[str, int], ...] = (("127.0.0.1", DEFAULT_PORT),)
    user: str = "iggy"
    password: str = ""
    token: str = ""
    tls: bool = False
    tls_ca: str = ""

    def connect(self, timeout: float) -> "BlockingIggy":
        """Connect to the first server that answers, and log in. Raises TransportError, IggyError, ConfigError."""
        from headwater.errors import TransportError
        from headwater.iggy.blocking import BlockingIggy, login_of

        password = resolve(self.password, "password") or "iggy"
        login = login_of(self.user, password, resolve(self.token, "token"))
        failure: TransportError | None = None
        for host, port in self.addresses:
            try:
                return BlockingIggy.connect(host, port, login, min(timeout, CONNECT_TIMEOUT), self._tls())
            except TransportError as error:
                failure = error
        assert failure is not None
        raise failure

    def _tls(self) -> "ssl.SSLContext | None":
        if not self.tls:
            return None
        import ssl

        return ssl.create_default_context(cafile=self.tls_ca or None)


@dataclass(frozen=True, slots=True)
class IggySourceOptions:
    """Counts in messages, sizes in bytes, times in seconds; `ending` is the first not read."""

    stream: str
    topics: tuple[str, ...]
    server: IggyServer = field(default_factory=IggyServer)
    starting: Positions | None = None
    ending: Positions = "latest"
    max_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    include_headers: IncludeHeaders = "map"
    decode: Decode = "none"
    fetch_batch: int = FETCH_BATCH
    read_timeout: float = READ_TIMEOUT
    max_message_bytes: int | None = None

    def starting_at(self, topic: str, partition: int, default: Edge) -> Position:
        return _of_one(self.starting, topic, partition, default)

    def ending_at(self, topic: str, partition: int) -> Position:
        return _of_one(self.ending, topic, partition, "latest")

    @property
    def wants_map(self) -> bool:
        return self.include_headers in ("map", "both")

    @property
    def wants_raw(self) -> bool:
        return self.include_headers in ("raw", "both")

    @property
    def wants_typed(self) -> bool:
        return self.include_headers == "typed"


@dataclass(frozen=True, slots=True)
class IggySinkOptions:
    """`topic` serves rows that bring none."""

    stream: str
    topic: str = ""
    server: IggyServer = field(default_factory=IggyServer)
    content_mode: ContentMode = "binary"
    batch_rows: int = BATCH_ROWS
    write_timeout: float = READ_TIMEOUT


def parse_source_options(given: Mapping[str, str]) -> IggySourceOptions:
    """Raises ConfigError, naming the option, for one that is unknown, missing or wrong."""
    options = lowered(given, SOURCE_NAMES)
    topics = tuple(dict.fromkeys(listed(options.get("topic", ""))))
    if not topics:
        raise ConfigError("option topic is missing", hint="name the topic to read, or several with commas between")
    headers = one_of("map", "typed", "raw", "both", "none")
    return IggySourceOptions(
        stream=_stream(options),
        topics=topics,
        server=_server(options),
        starting=_edge(options, "starting", topics),
        ending=_edge(options, "ending", topics) or "latest",
        max_offsets_per_trigger=parsed(options, "maxOffsetsPerTrigger", count, None),
        max_bytes_per_trigger=parsed(options, "maxBytesPerTrigger", size, None),
        min_partitions=parsed(options, "minPartitions", count, None),
        fail_on_data_loss=parsed(options, "failOnDataLoss", truth, True),
        include_headers=cast("IncludeHeaders", parsed(options, "includeHeaders", headers, "map")),
        decode=cast("Decode", parsed(options, "decode", one_of("none", "cloudevents"), "none")),
        fetch_batch=parsed(options, "fetchBatch", count, FETCH_BATCH),
        read_timeout=parsed(options, "readTimeout", seconds, READ_TIMEOUT),
        max_message_bytes=parsed(options, "maxMessageBytes", size, None),
    )


def parse_sink_options(given: Mapping[str, str]) -> IggySinkOptions:
    """As `parse_source_options`."""
    options = lowered(given, SINK_NAMES)
    mode = parsed(options, "contentMode", one_of("binary", "structured"), "binary")
    return IggySinkOptions(
        stream=_stream(options),
        topic=options.get("topic", "").strip(),
        server=_server(options),
        content_mode=cast("ContentMode", mode),
        batch_rows=parsed(options, "batchRows", count, BATCH_ROWS),
        write_timeout=parsed(options, "writeTimeout", seconds, READ_TIMEOUT),
    )


def _stream(options: Mapping[str, str]) -> str:
    stream = options.get("stream", "").strip()
    if not stream:
        raise ConfigError("option stream is missing", hint="name the Iggy stream that has the topic")
    return stream


def _server(options: Mapping[str, str]) -> IggyServer:
    for secret in ("password", "token"):
        kind, _, target = options.get(secret, "").partition(":")
        if options.get(secret) and (kind not in ("env", "file") or not target):
            raise ConfigError(
                f"option {secret} must say where the secret is, not what it is: Spark writes options into checkpoints",
                hint="env:NAME or file:PATH",
            )
    return IggyServer(
        addresses=parsed(options, "servers", _addresses, (("127.0.0.1", DEFAULT_PORT),)),
        user=options.get("user", "iggy"),
        password=options.get("password", ""),
        token=options.get("token", ""),
        tls=parsed(options, "tls", truth, bool(options.get("tlsca"))),
        tls_ca=options.get("tlsca", ""),
    )


def _addresses(text: str) -> tuple[tuple[str, int], ...]:
    found = []
    for url in listed(text):
        parts = urlsplit(url if "://" in url else f"iggy://{url}")
        if parts.username or parts.password:
            raise ConfigError("a server URL must not hold credentials here", hint="give user and password apart")
        if parts.scheme != "iggy" or not parts.hostname:
            raise ConfigError(f"{url!r} is no iggy://host:port", value=url)
        found.append((parts.hostname, parts.port or DEFAULT_PORT))
    if not found:
        raise ConfigError("no server is named", hint="for example iggy://127.0.0.1:8090")
    return tuple(found)


def _edge(options: Mapping[str, str], side: str, topics: tuple[str, ...]) -> Positions | None:
    if f"{side}offsets" in options and f"{side}timestamp" in options:
        raise ConfigError(f"options {side}Offsets and {side}Timestamp exclude each other")
    moment = parsed(options, f"{side}Timestamp", instant, None)
    return moment or parsed(options, f"{side}Offsets", lambda text: _positions(text, topics), None)


def _positions(text: str, topics: tuple[str, ...]) -> Positions:
    """One position for all partitions, or a JSON object by topic and partition."""
    if not text.startswith("{"):
        return _position(text)
    found: dict[str, dict[int, Position]] = {}
    for topic, partitions in json.loads(text).items():
        if topic not in topics:
            raise ValueError(f"{text} has the key {topic!r}, which is none of {', '.join(topics)}")
        if not isinstance(partitions, dict):
            raise ValueError(f'{text} must say of which partitions: {{"{topic}": {{"0": {json.dumps(partitions)}}}}}')
        found[topic] = {int(partition): _position(str(position)) for partition, position in partitions.items()}
    return found


def _position(text: str) -> Position:
    match text:
        case "earliest" | "latest" as edge:
            return edge
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is no offset, nor earliest or latest")
    return int(text)


def _of_one(positions: Positions | None, topic: str, partition: int, default: Edge) -> Position:
    if isinstance(positions, dict):
        return positions.get(topic, {}).get(partition, default)
    return default if positions is None else positions
