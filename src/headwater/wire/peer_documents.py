"""INFO and CONNECT between brokers: how the records of routes and leaf nodes become ops, and back.

The records, `route_lines` and `leaf_lines`, document the fields. Unknown fields are ignored, as in nats-server.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from headwater.errors import RemoteProtocolError
from headwater.model.record import Record
from headwater.wire.json_fields import differing, encode_fields, kinds_of, read_fields, typed, wire_names

AnyRecord = TypeVar("AnyRecord", bound=Record)
_LISTS = ("imports", "exports")  # `import` and `export` on the wire


class SubjectLists(Record):
    """Subjects that a broker imports or exports: those in `allow` (all if it is empty) without those in `deny`."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def document(self) -> dict[str, list[str]]:
        """The JSON form; empty lists are left out."""
        return {name: list(subjects) for name, subjects in self.items() if subjects}


_LISTS_KINDS = kinds_of(wire_names(SubjectLists._defaults), SubjectLists._defaults)


class InfoForm(Generic[AnyRecord]):
    """Writer and reader of one kind of peer's INFO. `optional`: for fields that default to None, a value of their type."""

    def __init__(self, kind: type[AnyRecord], peer: str, optional: Mapping[str, object] = MappingProxyType({})) -> None:
        self._kind = kind
        self._peer = peer
        self._names = wire_names(kind._defaults, {name: name.removesuffix("s") for name in _LISTS})
        self._kinds = kinds_of(self._names, {**kind._defaults, **{name: {} for name in _LISTS}, **optional})

    def encode(self, info: AnyRecord) -> bytes:
        """The whole op, with the space before CRLF that servers since 1.2 write. Fields with default values are left
        out.
        """
        fields = differing(info, self._names)
        lists = {wire: value.document() for wire, value in fields.items() if isinstance(value, SubjectLists)}
        return b"INFO " + encode_fields({**fields, **lists}) + b" \r\n"

    def decode(self, json: bytes) -> AnyRecord:
        """The record in the argument of INFO. Raises RemoteProtocolError if that is no JSON object or a field has the
        wrong type.
        """
        try:
            found = read_fields(json, self._kinds)
            for name in _LISTS:
                if name in found:
                    found[name] = SubjectLists(**typed(found[name], _LISTS_KINDS))
            return self._kind(**found)
        except (ValueError, RecursionError) as error:
            raise RemoteProtocolError(f"{self._peer} INFO cannot be read: {error}", value=json[:200]) from error


class ConnectForm(Generic[AnyRecord]):
    """Writer and reader of one kind of peer's CONNECT. `always`: fields that are written even with their default
    values.
    """

    def __init__(self, kind: type[AnyRecord], peer: str, always: Collection[str] = ()) -> None:
        self._kind = kind
        self._peer = peer
        self._always = always
        self._names = wire_names(kind._defaults, {"password": "pass"})
        self._kinds = kinds_of(self._names, kind._defaults)

    def encode(self, connect: AnyRecord) -> bytes:
        """The whole op. Fields with default values are left out."""
        return b"CONNECT " + encode_fields(differing(connect, self._names, self._always)) + b"\r\n"

    def decode(self, json: bytes) -> AnyRecord:
        """The record in the argument of CONNECT. Raises RemoteProtocolError, which does not quote it: it may contain a
        password.
        """
        try:
            return self._kind(**read_fields(json, self._kinds))
        except (ValueError, RecursionError) as error:
            raise RemoteProtocolError(f"{self._peer} CONNECT cannot be read: {type(error).__name__}") from None
