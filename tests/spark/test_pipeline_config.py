"""What a pipeline's file says, and what it may not say."""

from pathlib import Path

import pytest

from headwater.errors import ConfigError
from headwater.spark.pipeline_config import TEMPLATE, read_pipeline_config


def written(directory: Path, text: str) -> Path:
    path = directory / "pipeline.toml"
    path.write_text(text)
    return path


def test_the_template_is_a_configuration(tmp_path: Path) -> None:
    config = read_pipeline_config(written(tmp_path, TEMPLATE.format(name="pipeline.toml")))
    assert config.source["stream"] == "ORDERS"
    assert config.directory == tmp_path / "tables"
    assert (config.interval, config.gold_every, config.master, config.spark) == (1.0, 60.0, "local[*]", {})


def test_every_field_is_understood(tmp_path: Path) -> None:
    text = """
    [source]
    stream = "A,B"
    maxOffsetsPerTrigger = 100
    failOnDataLoss = false
    [tables]
    directory = "/data"
    [run]
    interval = 0
    gold_every = 5.5
    master = "local[2]"
    [spark]
    "spark.ui.enabled" = true
    """
    config = read_pipeline_config(written(tmp_path, text))
    assert config.source == {"stream": "A,B", "maxOffsetsPerTrigger": "100", "failOnDataLoss": "false"}
    assert config.directory == Path("/data")
    assert (config.interval, config.gold_every, config.master) == (0.0, 5.5, "local[2]")
    assert config.spark == {"spark.ui.enabled": "true"}


GOOD = '[source]\nstream = "S"\n[tables]\ndirectory = "t"\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[", "cannot be read"),
        ('[source]\nstream = "S"\n', "directory is missing"),
        ('[tables]\ndirectory = "t"\n', "stream is missing"),
        (GOOD.replace('"S"\n', '"S"\nstraem = "x"\n'), "did you mean stream"),
        (GOOD.replace('"S"\n', '"S"\npassword = "hunter2"\n'), "must say where the secret is"),
        (GOOD + "[sink]\n", "no section .sink."),
        (GOOD + "[run]\nevery = 1\n", "no field 'every'"),
        (GOOD + '[run]\ninterval = "1s"\n', "interval is no time"),
        (GOOD + "[run]\ngold_every = -1\n", "gold_every is no time"),
        ("run = 1\n" + GOOD, "no section .run."),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        read_pipeline_config(written(tmp_path, text))
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        read_pipeline_config(tmp_path / "missing.toml")
