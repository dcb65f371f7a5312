"""The page about a run: what is in it, what is left out and marked as such, and that it loads nothing."""

import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.cli.run_history import Batch
from headwater.cli.run_report import (
    MOST_BARS,
    MOST_SERIES,
    authors,
    charts_of,
    events_by_month,
    require_charts,
    write_report,
)
from headwater.errors import EnvironmentProblem
from headwater.spark_tables.run import PipelineCounts

COUNTS = PipelineCounts(bronze=5, bronze_distinct=5, silver=4, silver_distinct=3, rejects=1, gold=2)
BATCHES = [Batch(0, 1.0, 1.0, 3, 2, 1, 2, {"no id": 1}), Batch(1, 2.0, 1.0, 2, 2, 0, 0, {})]


def put(place: Path, rows: list[dict[str, Any]]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), place / "part.parquet")


def tables(root: Path, sources: int = 2) -> Path:
    put(
        root / "gold",
        [
            {"source": f"/s{at}<b>", "month": f"2026-0{month}-01", "events": 10 * at + month}
            for at in range(sources)
            for month in (1, 2)
        ],
    )
    commits = [("1", "ann"), ("2", "bob <i>"), ("2", "bob <i>"), ("3", None)]
    put(root / "silver", [{"source": "/s", "id": key, "commit": {"author": name}} for key, name in commits])
    put(root / "rejects" / "batch_id=0", [{"rule": "no id"}])
    return root


def test_months_have_the_events_of_each_source_and_the_small_ones_together(tmp_path: Path) -> None:
    months, series = events_by_month(tables(tmp_path, MOST_SERIES + 2))
    assert months == ["2026-01", "2026-02"]
    assert len(series) == MOST_SERIES + 1
    assert series["2 others"] == [0 + 1 + 10 + 1, 0 + 2 + 10 + 2]


def test_authors_are_counted_once_an_event(tmp_path: Path) -> None:
    assert authors(tables(tmp_path)) == {"ann": 1, "bob <i>": 1}


def test_the_page_has_charts_escaped_texts_and_loads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out" / "r.html"
    write_report(path, "A <run>", tables(tmp_path / "tables"), BATCHES, COUNTS)
    page = path.read_text(encoding="utf-8")
    assert page.count("<svg") == 5
    for word in (
        "A &lt;run&gt;",
        "Events by month and source",
        "/s1&lt;b&gt;",
        "ann",
        "no id",
        "2026-02",
        "left unread",
    ):
        assert word in page
    assert not re.search(r"<script|<link|<img|@import|(src|href)=.(https?:)?//|url\(", page)
    assert len(page) < 200_000
    assert [each.name for each in path.parent.iterdir()] == ["r.html"]


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    put(tmp_path / "rejects" / "batch_id=0", [{"rule": f"rule {number}"} for number in range(MOST_BARS + 3)])
    (chart,) = charts_of(tmp_path, [])
    assert (len(chart.labels), chart.note) == (MOST_BARS, "3 more, with 3")


def test_the_package_for_charts_leaves_no_finder_that_warns_at_every_import() -> None:
    require_charts()
    assert all(hasattr(finder, "find_spec") for finder in sys.meta_path)


def test_a_run_without_events_is_a_page_too(tmp_path: Path) -> None:
    nothing = PipelineCounts(bronze=0, bronze_distinct=0, silver=0, silver_distinct=0, rejects=0, gold=0)
    write_report(tmp_path / "r.html", "empty", tmp_path / "tables", [], nothing)
    assert "No row was rejected." in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentProblem, match="cannot be written"):
        write_report(tmp_path / "file" / "r.html", "t", tmp_path / "tables", BATCHES, COUNTS)
