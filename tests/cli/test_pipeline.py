"""`headwater pipeline`: a file to begin with, and the errors of one that is wrong."""

from pathlib import Path

import pytest

from headwater.cli.main import main
from headwater.cli.pipeline import show_step
from headwater.cli.run_history import RunHistory
from headwater.spark_tables.run import Progress


def test_init_writes_a_file_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "orders.toml"
    assert main(["pipeline", "init", str(path)]) == 0
    text = path.read_text()
    assert "headwater pipeline run orders.toml" in text
    assert str(path) in capsys.readouterr().out
    path.write_text("mine")
    assert main(["pipeline", "init", str(path)]) == 1
    assert path.read_text() == "mine"


def test_a_wrong_file_is_refused_before_spark_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text("[source]\n")
    assert main(["pipeline", "run", str(path)]) == 1
    assert "stream is missing" in capsys.readouterr().err


def test_a_batch_is_a_line_with_its_rows_lag_and_rejects_by_rule(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter((0.0, 2.0))
    history = RunHistory(lambda: next(times), lambda through: 7, lambda batch: {"not a CloudEvent": 1})
    for table, rows in (("bronze", 10), ("silver", 9), ("rejects", 1), ("gold", 2)):
        show_step(history, Progress(table, -1 if table == "gold" else 4, rows, rows))
    assert capsys.readouterr().err.splitlines() == [
        "pipeline  batch 4: bronze 10, silver 9, rejects 1 (not a CloudEvent 1); 2.0 s, 5 messages/s; 7 behind",
        "pipeline  gold: 2 rows",
    ]


def test_a_report_of_a_project_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pipeline", "run", str(tmp_path), "--report", "r.html"])
    assert "--report is for a configuration file" in capsys.readouterr().err
