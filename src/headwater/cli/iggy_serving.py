"""The Iggy face beside a broker, for `headwater serve`: its flags become options, its listeners a log line each.

    --iggy HOST:PORT  --iggy-http HOST:PORT  --iggy-quic HOST:PORT
    --iggy-seed HOST:PORT  --iggy-seed-http HOST:PORT
    --iggy-unique-ids SECONDS  --iggy-verify

It keeps its data in the folder `iggy` of the store directory, shows the streams of the broker's global account as topics,
and its own topics as streams there.
The first user is upstream's, `iggy`/`iggy`, or what its variables IGGY_ROOT_USERNAME and IGGY_ROOT_PASSWORD say when the
folder is new; on an address that others reach, the well-known password is warned of.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from headwater.cli.go_flags import Value
from headwater.errors import ConfigError

if TYPE_CHECKING:
    from headwater.broker.broker import Broker
    from headwater.iggy.face import IggyOptions

logger = logging.getLogger("headwater")

LISTENERS = {
    "iggy": "tcp",
    "iggy_http": "http",
    "iggy_quic": "quic",
    "iggy_seed": "seed",
    "iggy_seed_http": "seed_http",
}  # flag -> option
WITHOUT_LOGIN = "seed", "seed_http"
ANY_PORT = -1


class IggyFlags(NamedTuple):
    """What the flags ask for. `listeners`: addresses by option. `unique_ids`: seconds (ServiceOptions)."""

    listeners: Mapping[str, tuple[str, int]]
    unique_ids: float = 0.0
    verify: bool = False


def read(flags: Mapping[str, Value]) -> IggyFlags | None:
    """What the flags ask for; None when the face is not wanted. Raises ConfigError."""
    addresses = {option: _address(flag, str(flags[flag])) for flag, option in LISTENERS.items() if flags.get(flag)}
    unique_ids = flags.get("iggy_unique_ids", 0)
    if isinstance(unique_ids, int) and unique_ids < 0:
        raise ConfigError("--iggy-unique-ids takes seconds, 0 or more", value=unique_ids, limit=0)
    if not addresses:
        return None
    return IggyFlags(addresses, float(unique_ids), bool(flags.get("iggy_verify")))


def _address(flag: str, text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    digits = port.removeprefix("-")
    if not colon or not digits.isdigit() or not ANY_PORT <= int(port) < 1 << 16:
        raise ConfigError(f"--{flag} takes HOST:PORT, not {text!r}", value=text, hint="port -1 takes any free one")
    return host.strip("[]") or "0.0.0.0", max(0, int(port))


def make_options(flags: IggyFlags, broker: "Broker", environment: Mapping[str, str]) -> "IggyOptions":
    """What the face is started with: the broker's sync policy and certificate are its own too."""
    from headwater.iggy.face import IggyOptions
    from headwater.iggy.service import ServiceOptions

    tls, addresses = broker.options.tls, flags.listeners
    service = ServiceOptions(
        sync=broker.options.sync,
        root_user=environment.get("IGGY_ROOT_USERNAME", "iggy"),
        root_password=environment.get("IGGY_ROOT_PASSWORD", "iggy"),
        verify=flags.verify,
        unique_ids_seconds=flags.unique_ids,
    )
    return IggyOptions(
        tcp=addresses.get("tcp"),
        seed=addresses.get("seed"),
        seed_http=addresses.get("seed_http"),
        http=addresses.get("http"),
        quic=addresses.get("quic"),
        cert_file=tls.cert_file if tls is not None else None,
        key_file=tls.key_file if tls is not None else None,
        service=service,
    )


@asynccontextmanager
async def beside(broker: "Broker", flags: IggyFlags, environment: Mapping[str, str]) -> AsyncIterator[None]:
    """The face, from the broker's start to its stop. Raises EnvironmentProblem when it cannot start."""
    from pathlib import Path

    from headwater.broker.options import GLOBAL_ACCOUNT
    from headwater.cli.iggy_bridge import CapturedStreams
    from headwater.cli.iggy_topic_streams import TopicStreams
    from headwater.iggy.face import Iggy

    options = make_options(flags, broker, environment)
    assert broker.router is not None
    foreign = CapturedStreams(broker.jetstreams, GLOBAL_ACCOUNT, broker.router)
    async with AsyncExitStack() as running:
        iggy = await running.enter_async_context(Iggy(options, Path(broker.options.store_dir) / "iggy", foreign))
        jetstream = broker.jetstreams.get(GLOBAL_ACCOUNT)
        if jetstream is not None:
            await running.enter_async_context(TopicStreams(iggy.service, jetstream))
        ports = {option: getattr(iggy, f"{option}_port") for option in LISTENERS.values()}
        for option, (host, _) in flags.listeners.items():
            logger.info("Listening for Iggy clients (%s) on %s:%d", option, host, ports[option])
            if not _is_loopback(host) and (option in WITHOUT_LOGIN or options.service.root_password == "iggy"):
                logger.warning("Iggy (%s) on %s is open to whoever reaches it", option, host)
        yield


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
