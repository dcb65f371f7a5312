"""The record of attempts beside the checkpoint."""

from pathlib import Path

import pytest

from headwater.spark.attempts import RECORD, Attempt, begin, newest_batch


def plan(directory: Path, batch: int) -> None:
    (directory / "offsets").mkdir(exist_ok=True)
    (directory / "offsets" / str(batch)).touch()
    (directory / "offsets" / f".{batch}.crc").touch()


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_batch_is_first_begun_once(tmp_path: Path, form: str) -> None:
    checkpoint = form.format(tmp_path)
    plan(tmp_path, 9)
    plan(tmp_path, 10)
    assert newest_batch(tmp_path) == 10
    assert begin(checkpoint, 5.0) == Attempt(10, 5.0, first=True)
    assert begin(checkpoint, 6.0) == Attempt(10, 5.0, first=False)
    plan(tmp_path, 11)
    assert begin(checkpoint, 7.0) == Attempt(11, 7.0, first=True)


@pytest.mark.parametrize("checkpoint", ["", "s3://bucket/checkpoint", "hdfs:///checkpoint", "/no/such/directory"])
def test_without_a_local_checkpoint_there_is_no_record(checkpoint: str) -> None:
    assert begin(checkpoint, 1.0) is None


def test_nothing_is_known_of_a_query_that_planned_nothing_or_whose_record_is_broken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert begin(str(tmp_path), 1.0) is None
    plan(tmp_path, 0)
    (tmp_path / RECORD).parent.mkdir()
    (tmp_path / RECORD).write_text("{")
    assert begin(str(tmp_path), 1.0) is None
    assert "sink_record_unreadable" in caplog.text
