"""Findings: faults of stored data and how they were handled, one record type for recovery, the log, /healthz and /jsz.

    recovery, reading, a face's documents ─▶ Finding ─▶ the service keeps it ─▶ `report` (log), /healthz, /jsz, /metrics

A finding describes the disk at one moment. It stays in the service's list until the process ends, even if the data was
deleted since.

| severity    | meaning                                                              | logged at |
|-------------|----------------------------------------------------------------------|-----------|
| note        | what a crash leaves: nothing that was acknowledged is gone           | INFO      |
| warning     | a fault that cost no message: a damaged copy, a foreign file         | WARNING   |
| loss        | acknowledged messages, or what a consumer knew, are gone             | ERROR     |
| unavailable | the stream is not served; its files are left as they are             | ERROR     |
"""

import logging
from typing import Literal, NamedTuple

from headwater.streams.recovery import Damage, RecoveryReport

Severity = Literal["note", "warning", "loss", "unavailable"]

_LEVELS: dict[Severity, int] = {
    "note": logging.INFO,
    "warning": logging.WARNING,
    "loss": logging.ERROR,
    "unavailable": logging.ERROR,
}
_DONE = {
    "torn": "cut off",
    "corrupt": "skipped, and left in place",
    "missing": "their sequences stay unused",
}


class Finding(NamedTuple):
    """`stream`: its name as far as it is known. `path`: the file or directory. `what` and `done`: the fault and its
    handling, one clause each. `lost`: upper bound of the messages that are certainly lost."""

    stream: str
    path: str
    what: str
    done: str
    lost: int = 0
    severity: Severity = "warning"

    def __str__(self) -> str:
        lost = f", {self.lost} messages lost" if self.lost else ""
        return f"{self.what}; {self.done}{lost}"

    def as_document(self) -> dict[str, object]:
        """For JSON."""
        return dict(self._asdict())


def finding_of(damage: Damage, stream: str, directory: str) -> Finding:
    """The finding for damage in a log."""
    done = f"kept in {damage.kept}" if damage.kept else _DONE[damage.kind]
    path = f"{directory}/{damage.file}" if damage.file else directory
    lost = damage.end - damage.start if damage.certain else 0
    return Finding(stream, path, str(damage), done, lost, "loss" if damage.certain else "note")


def findings_of(report: RecoveryReport, stream: str, directory: str) -> list[Finding]:
    """The findings from opening a log."""
    found = [finding_of(damage, stream, directory) for damage in report.damage]
    return found + [Finding(stream, directory, note, "nothing lost") for note in report.notes]


def files_lost(name: str, directory: str, *, of: Literal["stream", "topic"]) -> Finding:
    """The finding for files that were removed while a log of this stream or topic is served."""
    what = f"has lost {'its files' if of == 'stream' else 'files of a partition'}: messages are refused"
    done = f"put them back where they were, or delete the {of}; restart the server if they come from a backup"
    return Finding(name, directory, what, done, severity="unavailable")


def report(logger: logging.Logger, finding: Finding) -> None:
    """Log a finding at the level of its severity."""
    event = "stream_unavailable" if finding.severity == "unavailable" else "stream_finding"
    level = _LEVELS[finding.severity]
    logger.log(
        level, "%s stream=%s path=%s severity=%s %s", event, finding.stream, finding.path, finding.severity, finding
    )
