"""Writing documents as a client: fields at their default are left out of a request, so that the defaults of the server
apply, whatever its version."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import NODEFAULT, Struct

# Always sent: the server's value for an absent field differs from the default here.
_ALWAYS_SENT = {"ack_policy"}


def encode_request(body: object, write: Callable[[Any], Any] | None = None) -> bytes:
    """The JSON of a request; b"" for None, a request without a document. `write`: converts values of the caller's own
    types."""
    return b"" if body is None else msgspec.json.encode(_sparse(body), enc_hook=write)


def _sparse(value: Any) -> Any:
    if isinstance(value, Struct):
        return {
            field.encode_name: _sparse(held)
            for field in msgspec.structs.fields(type(value))
            if (held := getattr(value, field.name)) != _default(field) or field.name in _ALWAYS_SENT
        }
    if isinstance(value, dict):
        return {name: _sparse(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_sparse(inner) for inner in value]
    return value


def _default(field: msgspec.structs.FieldInfo) -> object:
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    return field.default
