"""`headwater log inspect|verify|repair DIR`: show, check and repair the logs of a store directory.

DIR is one log or any directory above it, such as a store directory. `inspect` and `verify` only read, so they also work on
a log that a broker has open (its last batch may be incomplete) or one on a read-only mount. `repair` requires exclusive use
of the log.

Exit status: 0 when all is well, 1 when something is damaged or lost, 2 for a wrong command line.
"""

import argparse
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

from headwater.durable_files.documents import COPIES
from headwater.durable_files.files import OsFiles, ReadOnlyFiles
from headwater.errors import EnvironmentProblem, StorageError
from headwater.operations.inspection import Survey, repair, survey
from headwater.streams.opening import CopyKind
from headwater.streams.ownership import STATE_DOCUMENT
from headwater.streams.segment import base_offset_of


def main(argv: list[str]) -> int:
    """Apply one of the three commands to every log under a directory."""
    parser = argparse.ArgumentParser(
        prog="headwater log", description="Look at the logs under a directory, check them, mend them."
    )
    parser.add_argument("what", choices=["inspect", "verify", "repair"])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--json", action="store_true", help="one JSON document for each log")
    arguments = parser.parse_args(argv)
    logs = find_logs(arguments.directory)
    if not logs:
        raise EnvironmentProblem(f"there is no log under {arguments.directory}", value=str(arguments.directory))
    status = 0
    for log in logs:
        if arguments.what == "repair":
            copy, notes = copy_of(log)
            done = notes + repair(OsFiles(), str(log), time.time_ns(), copy)
            _show(log, {"done": done}, as_json=arguments.json)
            continue
        found = survey(ReadOnlyFiles(), str(log))
        _show(log, describe(found, full=arguments.what == "inspect"), as_json=arguments.json)
        if found.decision.damage or found.notes:
            status = 1
    return status


def find_logs(directory: Path) -> list[Path]:
    """Every directory that holds a log, from `directory` down, sorted by path."""
    found = []
    for folder, _, names in os.walk(directory):
        if any(name.startswith(STATE_DOCUMENT) or base_offset_of(name) is not None for name in names):
            found.append(Path(folder))
    return sorted(found)


def copy_of(log: Path) -> tuple[CopyKind, list[str]]:
    """Whether the log is that of a stream which copies from others; "none" for an Iggy partition and, with a note, where
    the configuration cannot be read: nothing fetches again what would be cut there."""
    from headwater.jetstream_state.begun_streams import DOCUMENT  # here: only a repair needs them
    from headwater.jetstream_state.store import StreamDirectory, copy_kind

    if not any((log.parent / f"{DOCUMENT}{ending}").exists() for ending in COPIES):
        return "none", []
    try:
        return copy_kind(StreamDirectory(ReadOnlyFiles(), str(log.parent)).load().config), []
    except StorageError as error:
        return "none", [f"{error}: opened as the log of a stream that is no copy"]


def describe(found: Survey, *, full: bool) -> dict[str, object]:
    """The result of a survey, for people and programs. `full`: with a list of segments."""
    report: dict[str, object] = {
        "start_offset": found.start_offset,
        "next_offset": found.decision.next_offset,
        "records": found.records,
        "bytes": sum(facts.file_size for facts in found.facts),
        "damage": [str(item) for item in found.decision.damage],
        "certainly_lost": sum(item.end - item.start for item in found.decision.damage if item.certain),
        "notes": found.notes,
    }
    if full:
        report["segments"] = [
            {
                "file": facts.name,
                "offsets": f"[{facts.base_offset}, {facts.end_offset})",
                "records": facts.record_count,
                "deleted": facts.dead,
                "bytes": facts.file_size,
                "compressed": "yes" if facts.head is not None and facts.head.compressed else "no",
                "first": _time(facts.first_timestamp_ns),
                "last": _time(facts.last_timestamp_ns),
            }
            for facts in found.facts
        ]
    return report


def _show(log: Path, report: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"log": str(log), **report}))
        return
    print(log)
    for name, value in report.items():
        if not isinstance(value, list):
            print(f"  {name:<15} {value}")
            continue
        print(f"  {name:<15} {len(value) or 'none'}")
        for item in value:
            text = "  ".join(f"{key} {part}" for key, part in item.items()) if isinstance(item, dict) else item
            print(f"    {text}")


def _time(timestamp_ns: int | None) -> str:
    if timestamp_ns is None:
        return "-"
    try:
        return datetime.fromtimestamp(timestamp_ns / 1e9, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ns} ns"
