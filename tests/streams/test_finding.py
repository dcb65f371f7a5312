"""One record for what is wrong on the disk: what a log's damage becomes, and at which level it is logged."""

import logging

import pytest

from headwater.streams.finding import Finding, Severity, finding_of, findings_of, report
from headwater.streams.recovery import Damage, RecoveryReport

CORRUPT = Damage("corrupt", 3, 5, True, "0.log", 4096, 80)


def test_certain_damage_is_a_loss_of_so_many_messages_in_that_file() -> None:
    finding = finding_of(CORRUPT, "ORDERS", "store/log")
    assert (finding.stream, finding.path, finding.lost, finding.severity) == ("ORDERS", "store/log/0.log", 2, "loss")
    assert str(finding).endswith("skipped, and left in place, 2 messages lost")


def test_what_a_crash_leaves_is_a_note_that_names_where_the_bytes_are_kept() -> None:
    finding = finding_of(Damage("torn", 3, 5, False, "0.log", 4096, 80, "0.log.cut-4096-0"), "S", "log")
    assert (finding.lost, finding.severity, finding.done) == (0, "note", "kept in 0.log.cut-4096-0")


def test_the_notes_of_a_recovery_are_findings_too() -> None:
    found = findings_of(RecoveryReport(damage=(CORRUPT,), notes=("0.log: damaged head page",)), "S", "log")
    assert [(finding.severity, finding.lost) for finding in found] == [("loss", 2), ("warning", 0)]


@pytest.mark.parametrize(
    ("severity", "level", "event"),
    [
        ("note", "INFO", "stream_finding"),
        ("warning", "WARNING", "stream_finding"),
        ("loss", "ERROR", "stream_finding"),
        ("unavailable", "ERROR", "stream_unavailable"),
    ],
)
def test_each_severity_has_its_level(
    severity: Severity, level: str, event: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    report(logging.getLogger("x"), Finding("S", "p", "what", "done", severity=severity))
    assert [(record.levelname, record.getMessage().split()[0]) for record in caplog.records] == [(level, event)]
