"""Exports, imports and mappings in the JWT of an account, as the configuration would have spelled them. Pure.

Left out, and so not to be had: an export that wants a token of its importers, and entries that make no sense. An import of
something that is not exported is left out later, by exchange/import_rules.py.
"""

from collections.abc import Iterator
from typing import Literal

from headwater.exchange.access_options import ExportOptions, ImportOptions, MappingOptions
from headwater.exchange.auth.jwt import AccountBody
from headwater.exchange.mappings import Mapping
from headwater.model.subject import is_literal, is_valid_subject

_NS = 1_000_000_000
_RESPONSES: dict[str, Literal["singleton", "stream", "chunked"]] = {
    "": "singleton", "Singleton": "singleton", "Stream": "stream", "Chunked": "chunked",
}  # fmt: skip


def exports_of(body: AccountBody) -> Iterator[ExportOptions]:
    """What it exports to everybody."""
    for one in body.exports or ():
        kind = _kind(one.type)
        if kind is None or one.token_req or one.response_type not in _RESPONSES or not _is_subject(one.subject):
            continue
        yield ExportOptions(
            subject=one.subject,
            kind=kind,
            response=_RESPONSES[one.response_type],
            response_threshold=one.response_threshold / _NS,
            account_token_position=one.account_token_position,
            allow_trace=one.allow_trace and kind == "service",
        )


def imports_of(body: AccountBody) -> Iterator[ImportOptions]:
    """What it imports."""
    for one in body.imports or ():
        kind = _kind(one.type)
        if kind is None or not _is_subject(one.subject):
            continue
        prefix = one.to if kind == "stream" and not one.local_subject else ""
        to = one.local_subject or ("" if prefix else one.to)
        yield ImportOptions(
            account=one.account,
            subject=one.subject,
            kind=kind,
            to=to,
            prefix=prefix,
            share=one.share,
            allow_trace=one.allow_trace and kind == "stream",
        )


def trace_of(body: AccountBody) -> tuple[str, int]:
    """Where its traces go, "" for nowhere, and of how many messages of a hundred."""
    trace = body.trace
    if trace is None or not (_is_subject(trace.dest) and is_literal(trace.dest.encode("utf-8", "surrogateescape"))):
        return "", 100
    return trace.dest, trace.sampling if 0 < trace.sampling <= 100 else 100


def mappings_of(body: AccountBody) -> Iterator[MappingOptions]:
    """Its mappings."""
    for source, destinations in (body.mappings or {}).items():
        options = MappingOptions(
            source=source, destinations=tuple((one.subject, one.weight or 100, one.cluster) for one in destinations)
        )
        try:
            Mapping(options, "")
        except ValueError:
            continue
        yield options


def _kind(name: str) -> Literal["stream", "service"] | None:
    if name == "stream":
        return "stream"
    return "service" if name == "service" else None


def _is_subject(subject: str) -> bool:
    return is_valid_subject(subject.encode("utf-8", "surrogateescape"))
