"""`headwater pipeline`: a file to begin with, and what is said about one that is wrong."""

from pathlib import Path

import pytest

from headwater.cli.main import main
from headwater.cli.pipeline import Lines
from headwater.spark.run import Progress


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


def test_a_batch_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(lambda: 7)
    for table, rows in (("bronze", 10), ("silver", 9), ("rejects", 1), ("gold", 2)):
        lines.show(Progress(table, -1 if table == "gold" else 4, rows, rows))
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("pipeline  batch 4: bronze 10, silver 9, rejects 1; ")
    assert first.endswith("; 7 were behind it")
    assert second == "pipeline  gold: 2 rows"
