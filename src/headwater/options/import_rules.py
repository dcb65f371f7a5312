"""Decides which imports between accounts are allowed, from the options alone. Pure; the error texts are nats-server's.

An import is allowed if the account that it names exports the subject (or a wider one), publicly or to this account, or,
with `account_token_position`, if the token at that position is this account's name. Imports that would make a message
circulate are refused: a service whose requests return to its importer, streams that feed each other.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from headwater.model.subject import is_valid_subject
from headwater.model.subject_rename import SubjectRename, common_pattern
from headwater.options.access import AccountOptions, ExportOptions, ImportOptions


class ImportProblem(NamedTuple):
    """The reason why an import of `account` is refused."""

    account: str
    reason: str


class CheckedImport(NamedTuple):
    """An allowed import: its options, its names on both sides, and the export that allows it."""

    options: ImportOptions
    rename: SubjectRename
    export: ExportOptions


def rename_of(entry: ImportOptions) -> SubjectRename:
    """The names of an import on both sides. Raises ValueError."""
    what = f"failed to create mapping transform for {entry.kind} import subject from"
    if entry.kind == "stream" and entry.prefix:
        if not is_valid_subject(entry.prefix.encode()) or {"*", ">"} & set(entry.prefix.split(".")):
            raise ValueError("stream import prefix can not contain wildcard tokens")
        return SubjectRename(entry.subject, prefix=entry.prefix)
    try:
        return SubjectRename(entry.subject, entry.to)
    except ValueError as error:
        there, here = (entry.subject, entry.to) if entry.kind == "stream" else (entry.to, entry.subject)
        raise ValueError(f'{what} "{there}" to "{here}": {error}') from None


def export_for(entry: ImportOptions, importer: str, exporter: AccountOptions) -> ExportOptions | None:
    """The export that allows an import, or None."""
    wanted = entry.subject.encode()
    for export in exporter.exports:
        offered = export.subject.encode()
        if export.kind != entry.kind or common_pattern(offered, wanted) != wanted:
            continue
        if export.account_token_position:
            tokens = entry.subject.split(".")
            at = export.account_token_position - 1
            if at < len(tokens) and tokens[at] == importer:
                return export
        elif export.accounts is None or importer in export.accounts:
            return export
    return None


def check_imports(
    accounts: Iterable[AccountOptions],
) -> tuple[dict[str, list[CheckedImport]], list[ImportProblem]]:
    """The allowed imports, by importing account, and the problems of the others."""
    known = {account.name: account for account in accounts}
    held: dict[str, list[CheckedImport]] = {name: [] for name in known}
    problems: list[ImportProblem] = []
    for account in known.values():
        for entry in account.imports:
            found = _check(entry, account, known)
            if isinstance(found, str):
                problems.append(ImportProblem(account.name, found))
            elif any(other.options == entry for other in held[account.name]):
                problems.append(ImportProblem(account.name, _adding(entry, f"{entry.kind} import already exists")))
            elif _forms_a_cycle(account.name, found, held):
                problems.append(ImportProblem(account.name, _adding(entry, "import forms a cycle")))
            else:
                held[account.name].append(found)
    return held, problems


def _check(entry: ImportOptions, account: AccountOptions, known: Mapping[str, AccountOptions]) -> CheckedImport | str:
    exporter = known.get(entry.account)
    if exporter is None:
        return f'"{entry.account}" account not defined for {entry.kind} import'
    export = export_for(entry, account.name, exporter)
    if export is None:
        return _adding(entry, f"{entry.kind} import not authorized")
    try:
        return CheckedImport(entry, rename_of(entry), export)
    except ValueError as error:
        return _adding(entry, str(error))


def _adding(entry: ImportOptions, reason: str) -> str:
    return f'Error adding {entry.kind} import "{entry.subject}": {reason}'


def _forms_a_cycle(importer: str, new: CheckedImport, held: Mapping[str, list[CheckedImport]]) -> bool:
    """Whether the exporter, directly or through others, itself imports the same subject from `importer`."""
    seen: set[tuple[str, bytes]] = set()
    open_ends = [(new.options.account, new.rename.remote)]
    while open_ends:
        account, subject = open_ends.pop()
        if (account, subject) in seen:
            continue
        seen.add((account, subject))
        if account == importer and common_pattern(subject, new.rename.local) is not None:
            return True
        open_ends += _following(account, subject, new.options.kind, held)
    return False


def _following(
    account: str, subject: bytes, kind: str, held: Mapping[str, list[CheckedImport]]
) -> Iterator[tuple[str, bytes]]:
    for other in held.get(account, ()):
        shared = common_pattern(subject, other.rename.local) if other.options.kind == kind else None
        if shared is not None:
            yield other.options.account, other.rename.to_remote(shared)
