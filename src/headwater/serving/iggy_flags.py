"""The flags of `headwater serve` for Iggy clients, converted to `IggyOptions`.

    --iggy HOST:PORT  --iggy-http HOST:PORT  --iggy-quic HOST:PORT  --iggy-websocket HOST:PORT
    --iggy-seed HOST:PORT  --iggy-seed-http HOST:PORT
    --iggy-unique-ids SECONDS  --iggy-verify

The first user is upstream's default, `iggy`/`iggy`, or the value of IGGY_ROOT_USERNAME and IGGY_ROOT_PASSWORD when the
store is created. `server/faces/iggy.py` uses the options.
"""

from collections.abc import Mapping
from typing import Any

from headwater.errors import ConfigError
from headwater.iggy.face import Address, IggyOptions
from headwater.iggy.service_options import ServiceOptions
from headwater.serving.go_flags import Value

ANY_PORT = -1
_FLAGS = {
    "tcp": "iggy",
    "http": "iggy_http",
    "quic": "iggy_quic",
    "websocket": "iggy_websocket",
    "seed": "iggy_seed",
    "seed_http": "iggy_seed_http",
}


def read(flags: Mapping[str, Value], environment: Mapping[str, str]) -> IggyOptions | None:
    """The options of these flags; None when no listener is requested. Raises ConfigError."""
    unique_ids = flags.get("iggy_unique_ids", 0)
    if isinstance(unique_ids, int) and unique_ids < 0:
        raise ConfigError("--iggy-unique-ids takes seconds, 0 or more", value=unique_ids, limit=0)
    at: dict[str, Any] = {name: _address(flag, str(flags.get(flag, ""))) for name, flag in _FLAGS.items()}
    if not any(at.values()):
        return None
    service = ServiceOptions(
        root_user=environment.get("IGGY_ROOT_USERNAME", "iggy"),
        root_password=environment.get("IGGY_ROOT_PASSWORD", "iggy"),
        verify=bool(flags.get("iggy_verify")),
        unique_ids_seconds=float(unique_ids),
    )
    return IggyOptions(**at, service=service)


def _address(flag: str, text: str) -> Address | None:
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    digits = port.removeprefix("-")
    if not colon or not digits.isdigit() or not ANY_PORT <= int(port) < 1 << 16:
        name = flag.replace("_", "-")
        raise ConfigError(f"--{name} takes HOST:PORT, not {text!r}", value=text, hint="port -1 takes any free one")
    return host.strip("[]") or "0.0.0.0", max(0, int(port))
