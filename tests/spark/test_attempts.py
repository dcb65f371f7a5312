"""The record of attempts beside the checkpoint."""

from pathlib import Path

import pytest

from headwater.spark.attempts import RECORD, Attempt, begin, newest_batch, recorded, warn_without_record


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


WITHOUT_RECORD = [
    {"checkpointLocation": "s3://bucket/checkpoint"},
    {"CHECKPOINTLOCATION": "{}", "asyncProgressTrackingEnabled": "True"},
    {},
]


@pytest.mark.parametrize("options", WITHOUT_RECORD)
def test_an_exactly_once_query_without_a_record_warns_once_and_another_never(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, options: dict[str, str]
) -> None:
    warn_without_record.cache_clear()
    plan(tmp_path, 1)
    given = {name: value.format(tmp_path) for name, value in options.items()}
    assert recorded(given, exactly_once=False, now=1.0) is None
    assert caplog.text == ""
    for now in (2.0, 3.0):
        assert recorded(given, exactly_once=True, now=now) is None
    assert caplog.text.count("sink_without_record") == 1


def test_a_query_with_a_local_checkpoint_is_recorded_in_silence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan(tmp_path, 4)
    given = {"checkpointLocation": str(tmp_path)}
    assert recorded(given, exactly_once=True, now=2.0) == Attempt(4, 2.0, first=True)
    assert caplog.text == ""
