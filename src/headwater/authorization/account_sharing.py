"""Exports, imports and mappings in an account's JWT, in the form of the configuration. Pure.

An export that requires a token from its importers and invalid entries are left out; `left_out_of` names them for the
log. options/import_rules.py later leaves out imports that no export allows.
"""

from collections.abc import Iterator
from typing import Literal

from headwater.model.subject import is_literal, is_valid_subject
from headwater.options.access import ExportOptions, ImportOptions, MappingOptions
from headwater.options.mappings import Mapping
from headwater.wire.jwt import AccountBody, ExportClaims

OWN_TIER = "R1"  # our streams have one replica
_NS = 1_000_000_000
_RESPONSES: dict[str, Literal["singleton", "stream", "chunked"]] = {
    "": "singleton", "Singleton": "singleton", "Stream": "stream", "Chunked": "chunked",
}  # fmt: skip


def exports_of(body: AccountBody) -> Iterator[ExportOptions]:
    """The account's exports."""
    for one in body.exports or ():
        kind = _kind(one.type)
        if kind is None or _fault_of(one):
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
    """The account's imports."""
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
    """The destination of the account's traces, "" for none, and the percentage of messages to trace."""
    trace = body.trace
    if trace is None or not (_is_subject(trace.dest) and is_literal(trace.dest.encode("utf-8", "surrogateescape"))):
        return "", 100
    return trace.dest, trace.sampling if 0 < trace.sampling <= 100 else 100


def mappings_of(body: AccountBody) -> Iterator[MappingOptions]:
    """The account's subject mappings."""
    for source, destinations in (body.mappings or {}).items():
        options = MappingOptions(
            source=source, destinations=tuple((one.subject, one.weight or 100, one.cluster) for one in destinations)
        )
        try:
            Mapping(options, "")
        except ValueError:
            continue
        yield options


def left_out_of(body: AccountBody) -> Iterator[str]:
    """The entries that have no effect, with the reasons."""
    for export in body.exports or ():
        if fault := _fault_of(export):
            yield f"the export of {export.subject!r}: {fault}"
    for one in body.imports or ():
        if _kind(one.type) is None or not _is_subject(one.subject):
            yield f"the import of {one.subject!r}: its subject or its type"
    mapped = {one.source for one in mappings_of(body)}
    for source in body.mappings or ():
        if source not in mapped:
            yield f"the mapping of {source!r}: its subjects or weights"
    for tier in body.limits.tiered_limits:
        if tier != OWN_TIER:
            yield f"the JetStream limits of tier {tier!r}: streams here have one replica ({OWN_TIER})"
    if body.trace is not None and body.trace.dest and not trace_of(body)[0]:
        yield f"traces: nothing can be published to {body.trace.dest!r}"


def _fault_of(export: ExportClaims) -> str:
    """Why an export is left out; "" if it is not."""
    if export.token_req:
        return "importers would have to show a token"
    known = _kind(export.type) is not None and export.response_type in _RESPONSES
    return "" if known and _is_subject(export.subject) else "its subject, its type or its response type"


def _kind(name: str) -> Literal["stream", "service"] | None:
    if name == "stream":
        return "stream"
    return "service" if name == "service" else None


def _is_subject(subject: str) -> bool:
    return is_valid_subject(subject.encode("utf-8", "surrogateescape"))
