"""Headwater: events with their headers intact, from NATS clients to Spark tables.

The names below load on first use, so that `import headwater` costs a few milliseconds and a pure layer never pulls
asyncio in behind one's back.
"""

from headwater.version import VERSION

TYPE_CHECKING = False  # not from `typing`, which takes 10 ms: nothing can handle a SIGINT before this module is there

if TYPE_CHECKING:
    from headwater.client.client import connect as connect
    from headwater.errors import HeadwaterError as HeadwaterError
    from headwater.model.header_block import decode_header_block as decode_header_block
    from headwater.model.header_block import encode_header_block as encode_header_block
    from headwater.model.headers import Headers as Headers
    from headwater.model.message import Message as Message
    from headwater.model.status import Status as Status
    from headwater.model.typed_header import HeaderKey as HeaderKey
    from headwater.model.typed_header import HeaderKind as HeaderKind
    from headwater.model.typed_header import HeaderValue as HeaderValue
    from headwater.model.typed_headers import TypedHeaders as TypedHeaders
    from headwater.server.broker import Broker as Broker

    __compiled__: bool

__version__ = VERSION

_HOMES = {
    "Broker": "headwater.server.broker",
    "HeaderKey": "headwater.model.typed_header",
    "HeaderKind": "headwater.model.typed_header",
    "HeaderValue": "headwater.model.typed_header",
    "Headers": "headwater.model.headers",
    "HeadwaterError": "headwater.errors",
    "Message": "headwater.model.message",
    "Status": "headwater.model.status",
    "TypedHeaders": "headwater.model.typed_headers",
    "connect": "headwater.client.client",
    "decode_header_block": "headwater.model.header_block",
    "encode_header_block": "headwater.model.header_block",
}

__all__ = ["__compiled__", "__version__", *sorted(_HOMES)]


if not TYPE_CHECKING:  # a type checker that saw it would take any name for one of ours

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name == "__compiled__":
            return import_module("headwater.wire.memory").COMPILED
        if name not in _HOMES:
            raise AttributeError(f"module 'headwater' has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
