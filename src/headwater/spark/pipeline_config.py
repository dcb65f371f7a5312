"""The configuration file of a pipeline: TOML, checked as a whole before Spark is started.

    [source]                # options of the source, under their names
    format = "nats"         # or iggy
    stream = "ORDERS"
    servers = "nats://127.0.0.1:4222"

    [tables]
    directory = "tables"    # relative to the file's own directory

    [run]
    interval = 1            # seconds between micro-batches; 0: no pause
    gold_every = 60         # minimum seconds between computations of gold, if silver has grown
    master = "local[*]"
    metrics = "127.0.0.1:9464"    # for Prometheus; off by default

    [spark]                 # settings of Spark
    "spark.driver.memory" = "4g"

The file contains no secrets: the source's options take references to them.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwater.errors import ConfigError
from headwater.spark.iggy.options import parse_source_options
from headwater.spark.options import parse_options
from headwater.spark_tables.metrics import parse_address

SECTIONS: dict[str, tuple[str, ...] | None] = {
    "source": None,  # checked by the source's own parser
    "tables": ("directory",),
    "run": ("interval", "gold_every", "master", "metrics"),
    "spark": None,
}

PARSERS: dict[str, Callable[[Mapping[str, str]], object]] = {"nats": parse_options, "iggy": parse_source_options}

TEMPLATE = """\
# A pipeline from a NATS stream to tables: headwater pipeline run {name}

[source]                # options of format("nats"): docs/spark.md
stream = "ORDERS"
servers = "nats://127.0.0.1:4222"
startingOffsets = "earliest"

[tables]
directory = "tables"

[run]
interval = 1            # seconds between micro-batches
gold_every = 60         # seconds
# metrics = "127.0.0.1:9464"    # for Prometheus

[spark]
# "spark.driver.memory" = "4g"
"""


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """`source`: options of the source `format`. `directory` is absolute. Times are in seconds."""

    source: Mapping[str, str]
    directory: Path
    format: str = "nats"
    interval: float = 1.0
    gold_every: float = 60.0
    master: str = "local[*]"
    spark: Mapping[str, str] = field(default_factory=dict)
    metrics: str = ""


def read_pipeline_config(path: Path) -> PipelineConfig:
    """Read the file. Raises ConfigError, naming section and field, when it cannot be read or has an unknown or invalid
    field."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", value=str(path)) from error
    _check_names(path, document)
    source = {name: _text(value) for name, value in document.get("source", {}).items()}
    kind = source.pop("format", "nats")
    if kind not in PARSERS:
        raise ConfigError(f"{path}, [source]: there is no format {kind!r}", value=kind, limit=tuple(PARSERS))
    try:
        PARSERS[kind](source)
    except ConfigError as error:
        raise ConfigError(f"{path}, [source]: {error}", value=str(path)) from error
    directory = document.get("tables", {}).get("directory")
    if not isinstance(directory, str) or not directory:
        raise ConfigError(f"{path}, [tables]: directory is missing", value=str(path), hint='directory = "tables"')
    run = document.get("run", {})
    return PipelineConfig(
        source=source,
        format=kind,
        directory=(path.parent / directory).absolute(),
        interval=_seconds(path, run, "interval", 1.0),
        gold_every=_seconds(path, run, "gold_every", 60.0),
        master=str(run.get("master", "local[*]")),
        metrics=_address(path, run),
        spark={name: _text(value) for name, value in document.get("spark", {}).items()},
    )


def _check_names(path: Path, document: Mapping[str, Any]) -> None:
    for section, fields in document.items():
        if section not in SECTIONS or not isinstance(fields, dict):
            raise ConfigError(f"{path}: there is no section [{section}]", value=section, limit=tuple(SECTIONS))
        known = SECTIONS[section]
        for name in fields:
            if known is not None and name not in known:
                raise ConfigError(f"{path}, [{section}]: there is no field {name!r}", value=name, limit=known)


def _text(value: object) -> str:
    """A value in the form of Spark's options."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _address(path: Path, run: Mapping[str, Any]) -> str:
    address = str(run.get("metrics", ""))
    if address:
        try:
            parse_address(address)
        except ConfigError as error:
            raise ConfigError(f"{path}, [run]: metrics: {error}", value=address) from error
    return address


def _seconds(path: Path, run: Mapping[str, Any], name: str, default: float) -> float:
    value = run.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise ConfigError(f"{path}, [run]: {name} is no time in seconds", value=value)
    return float(value)
