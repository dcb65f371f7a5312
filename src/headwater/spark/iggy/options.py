"""The options of `format("iggy")`, for reading and for writing, as checked values.

Where to start and end is given as in Spark's Kafka source: `{"orders": {"0": 123, "1": "latest"}}`, by topic and partition,
or one word or number for all. Secrets are references, as in `format("nats")`.
"""

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import urlsplit

from headwater.errors import ConfigError
from headwater.spark.option_values import count, listed, lowered, one_of, parsed, seconds, truth
from headwater.spark.read_options import (
    READ_NAMES,
    READ_TIMEOUT,
    Position,
    Positions,
    ReadOptions,
    parse_read_options,
    position,
)
from headwater.spark.server_options import check_reference, resolve

if TYPE_CHECKING:
    import ssl

    from headwater.iggy_client.blocking import BlockingIggy

ContentMode = Literal["binary", "structured"]

DEFAULT_PORT = 8090
CONNECT_TIMEOUT = 5.0  # seconds
FETCH_BATCH = 10_000  # messages per poll; about 8 MiB at most
BATCH_ROWS = 1_000  # messages per send

SERVER_NAMES = ("servers", "user", "password", "token", "tls", "tlsCa")
SOURCE_NAMES = ("stream", "topic", *READ_NAMES, *SERVER_NAMES)
SINK_NAMES = ("stream", "topic", "contentMode", "batchRows", "writeTimeout", *SERVER_NAMES)


@dataclass(frozen=True, slots=True)
class IggyServer:
    """The servers and credentials to connect with; `password` and `token` are references."""

    addresses: tuple[tuple[str, int], ...] = (("127.0.0.1", DEFAULT_PORT),)
    user: str = "iggy"
    password: str = ""
    token: str = ""
    tls: bool = False
    tls_ca: str = ""

    def connect(self, timeout: float) -> "BlockingIggy":
        """Connect to the first server that answers, and log in. Raises TransportError, IggyError, ConfigError."""
        from headwater.iggy_client.blocking import BlockingIggy
        from headwater.iggy_client.requests import login_of
        from headwater.net.blocking import first_that_answers

        password = resolve(self.password, "password") or "iggy"
        login = login_of(self.user, password, resolve(self.token, "token"))
        patience = min(timeout, CONNECT_TIMEOUT)
        return first_that_answers(
            self.addresses, lambda place: BlockingIggy.connect(*place, login, patience, self._tls())
        )

    def _tls(self) -> "ssl.SSLContext | None":
        if not self.tls:
            return None
        from pathlib import Path

        from headwater.net.tls import client_context

        return client_context(Path(self.tls_ca) if self.tls_ca else None)


@dataclass(frozen=True, slots=True)
class IggySourceOptions(ReadOptions):
    """`starting` and `ending` name places as (topic, partition)."""

    stream: str
    topics: tuple[str, ...]
    server: IggyServer = field(default_factory=IggyServer)
    fetch_batch: int = field(default=FETCH_BATCH, kw_only=True)

    @property
    def wants_typed(self) -> bool:
        return self.include_headers == "typed"

    @property
    def name(self) -> str:
        """`iggy[shop/payments,orders@host:8090]`, the name of the source in progress reports."""
        where = ",".join(f"{host}:{port}" for host, port in self.server.addresses)
        return f"iggy[{self.stream}/{','.join(self.topics)}@{where}]"


@dataclass(frozen=True, slots=True)
class IggySinkOptions:
    """`topic` is for rows that have none."""

    stream: str
    topic: str = ""
    server: IggyServer = field(default_factory=IggyServer)
    content_mode: ContentMode = "binary"
    batch_rows: int = BATCH_ROWS
    write_timeout: float = READ_TIMEOUT

    @property
    def name(self) -> str:
        """`iggy[shop/payments@host:8090]`; `*` for a topic that the rows say."""
        where = ",".join(f"{host}:{port}" for host, port in self.server.addresses)
        return f"iggy[{self.stream}/{self.topic or '*'}@{where}]"


def parse_source_options(given: Mapping[str, str]) -> IggySourceOptions:
    """Parse the source options. Raises ConfigError, naming the option, for one that is unknown, missing or invalid."""
    options = lowered(given, SOURCE_NAMES)
    topics = tuple(dict.fromkeys(listed(options.get("topic", ""))))
    if not topics:
        raise ConfigError("option topic is missing", hint="name the topic to read, or several with commas between")
    return IggySourceOptions(
        stream=_stream(options),
        topics=topics,
        server=_server(options),
        **parse_read_options(
            options, ("map", "typed", "raw", "both", "none"), FETCH_BATCH, lambda text: _positions(text, topics)
        ),
    )


def parse_sink_options(given: Mapping[str, str]) -> IggySinkOptions:
    """Parse the sink options, like `parse_source_options`."""
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
        check_reference(options.get(secret, ""), secret)
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


def _positions(text: str, topics: tuple[str, ...]) -> Positions:
    """Parse one position for all partitions, or a JSON object by topic and partition."""
    if not text.startswith("{"):
        return position(text, 0)
    found: dict[Hashable, Position] = {}
    for topic, partitions in json.loads(text).items():
        if topic not in topics:
            raise ValueError(f"{text} has the key {topic!r}, which is none of {', '.join(topics)}")
        if not isinstance(partitions, dict):
            raise ValueError(f'{text} must say of which partitions: {{"{topic}": {{"0": {json.dumps(partitions)}}}}}')
        found |= {(topic, int(number)): position(str(stated), 0) for number, stated in partitions.items()}
    return found
