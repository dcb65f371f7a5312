"""The two documents that open a conversation between brokers, INFO and CONNECT, as routes and leaf nodes both write them.

What a field means stands with the records (`route_lines`, `leaf_lines`); here is how a record becomes an op and back.
Unknown fields are ignored, as nats-server does.
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
    """Subjects that a broker imports or exports: those allowed (none: all) less those denied."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def document(self) -> dict[str, list[str]]:
        """As it stands in JSON: an empty list is left out."""
        return {name: list(subjects) for name, subjects in self.items() if subjects}


_LISTS_KINDS = kinds_of(wire_names(SubjectLists._defaults), SubjectLists._defaults)


class InfoForm(Generic[AnyRecord]):
    """How INFO of one kind of peer is written and read. `optional`: values of the kind of fields that may be None."""

    def __init__(self, kind: type[AnyRecord], peer: str, optional: Mapping[str, object] = MappingProxyType({})) -> None:
        self._kind = kind
        self._peer = peer
        self._names = wire_names(kind._defaults, {name: name.removesuffix("s") for name in _LISTS})
        self._kinds = kinds_of(self._names, {**kind._defaults, **{name: {} for name in _LISTS}, **optional})

    def encode(self, info: AnyRecord) -> bytes:
        """The whole op, with the blank before CRLF that servers since 1.2 write. What is as by default is left out."""
        fields = differing(info, self._names)
        lists = {wire: value.document() for wire, value in fields.items() if isinstance(value, SubjectLists)}
        return b"INFO " + encode_fields({**fields, **lists}) + b" \r\n"

    def decode(self, json: bytes) -> AnyRecord:
        """Raises RemoteProtocolError when it is not the JSON object that it should be."""
        try:
            found = read_fields(json, self._kinds)
            for name in _LISTS:
                if name in found:
                    found[name] = SubjectLists(**typed(found[name], _LISTS_KINDS))
            return self._kind(**found)
        except (ValueError, RecursionError) as error:
            raise RemoteProtocolError(f"{self._peer} INFO cannot be read: {error}", value=json[:200]) from error


class ConnectForm(Generic[AnyRecord]):
    """How CONNECT of one kind of peer is written and read. `always`: fields that are written even when they are false."""

    def __init__(self, kind: type[AnyRecord], peer: str, always: Collection[str] = ()) -> None:
        self._kind = kind
        self._peer = peer
        self._always = always
        self._names = wire_names(kind._defaults, {"password": "pass"})
        self._kinds = kinds_of(self._names, kind._defaults)

    def encode(self, connect: AnyRecord) -> bytes:
        """The whole op. What is as by default is left out."""
        return b"CONNECT " + encode_fields(differing(connect, self._names, self._always)) + b"\r\n"

    def decode(self, json: bytes) -> AnyRecord:
        """Raises RemoteProtocolError, which does not quote the document: it may hold a password."""
        try:
            return self._kind(**read_fields(json, self._kinds))
        except (ValueError, RecursionError) as error:
            raise RemoteProtocolError(f"{self._peer} CONNECT cannot be read: {type(error).__name__}") from None
