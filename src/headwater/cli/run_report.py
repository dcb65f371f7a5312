"""A pipeline run as one HTML file with the contents of the tables and the progress of the run. It loads no other resource.

    tables (gold, silver, rejects) ─┐
    RunHistory ─────────────────────┴▶ charts (pygal, SVG within the page) ─▶ FILE.html, replaced by rename

Texts of events (sources, authors, rules) are escaped. Charts show the MOST_SERIES largest sources and MOST_BARS largest
bars, and state how many they omit: a page with ten thousand sources would be unreadable. Authors are counted in memory, and
therefore omitted above MOST_COUNTED events.
"""

import html
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.cli.run_history import Batch
from headwater.errors import EnvironmentProblem

if TYPE_CHECKING:
    from headwater.spark_tables.run import PipelineCounts

MOST_SERIES = 8  # sources with a colour of their own; the others are summed
MOST_BARS = 15  # authors and rules
MOST_POINTS = 200  # batches drawn for a long run
MOST_COUNTED = 2_000_000  # events; counting authors needs about 200 bytes for each
_SCRIPT = re.compile(r"<script.*?</script>", re.DOTALL)
_STYLE = (
    "body{font-family:system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.2rem .8rem;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}svg{width:100%;height:auto}figcaption{color:#666}figure{margin:1.5rem 0}"
)


class Chart(NamedTuple):
    """`kind`: the name of a pygal chart class. `series` maps a name to one value per label. `note` is printed below the
    chart."""

    kind: str
    title: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    note: str = ""


# ── what is in the tables ──


def events_by_month(tables: Path) -> tuple[list[str], dict[str, list[int]]]:
    """Months, and the number of events per month for each source; the smaller sources are summed as "others"."""
    counts: dict[tuple[str, str], int] = Counter()
    for row in _rows(tables / "gold", ["source", "month", "events"]):
        counts[str(row["source"]), str(row["month"])[:7]] += row["events"]
    months = sorted({month for _, month in counts})
    totals: Counter[str] = Counter()
    for (source, _), number in counts.items():
        totals[source] += number
    shown = [source for source, _ in totals.most_common(MOST_SERIES)]
    series = {source: [counts.get((source, month), 0) for month in months] for source in shown}
    if len(totals) > len(shown):
        whole = [sum(number for (_, each), number in counts.items() if each == month) for month in months]
        named = [sum(values[at] for values in series.values()) for at in range(len(months))]
        series[f"{len(totals) - len(shown)} others"] = [every - some for every, some in zip(whole, named, strict=True)]
    return months, series


def authors(tables: Path) -> Counter[str]:
    """Commits by author, counting each event once; empty when the events are not commits."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from headwater.spark_tables.tables import count_rows

    if not 0 < count_rows(tables / "silver") <= MOST_COUNTED:
        return Counter()
    table = pq.read_table(tables / "silver", columns=["source", "id", "commit"])
    names = pc.struct_field(table.column("commit"), "author").to_pylist()
    keys = zip(table.column("source").to_pylist(), table.column("id").to_pylist(), strict=True)
    return Counter(name for name in dict(zip(keys, names, strict=True)).values() if name)


def rejects_by_rule(place: Path) -> dict[str, int]:
    """The number of rows by broken rule, in the table `rejects` or in one of its batches."""
    found = Counter(str(row["rule"] or "another rule") for row in _rows(place, ["rule"]))
    return dict(found.most_common())


def _rows(place: Path, columns: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of all Parquet files under a path, file by file."""
    import pyarrow.parquet as pq

    for file in sorted(place.rglob("*.parquet")):
        yield from pq.ParquetFile(file).read(columns=columns).to_pylist()


# ── the page ──


def charts_of(tables: Path, batches: Sequence[Batch]) -> list[Chart]:
    """The charts that have data."""
    months, by_source = events_by_month(tables)
    by_author, by_rule = authors(tables), rejects_by_rule(tables / "rejects")
    step = max(1, -(-len(batches) // MOST_POINTS))
    drawn = batches[::step]
    times = [f"{batch.at:.1f}" for batch in drawn]
    lag = [batch.behind for batch in drawn]
    skipped = f"every {step}th batch" if step > 1 else ""
    charts = [
        Chart("StackedBar", "Events by month and source", months, by_source),
        _largest("Commits by author", by_author),
        _largest("Rejects by rule", by_rule),
        Chart(
            "Line", "Messages a second, by seconds since the start", times, {"rate": [b.rate for b in drawn]}, skipped
        ),
    ]
    if any(value is not None for value in lag):
        charts.append(Chart("Line", "Messages left unread, by seconds since the start", times, {"lag": lag}, skipped))
    return [chart for chart in charts if chart.labels]


def _largest(title: str, counts: Mapping[str, int]) -> Chart:
    shown = Counter(counts).most_common(MOST_BARS)
    left = len(counts) - len(shown)
    note = f"{left} more, with {sum(counts.values()) - sum(number for _, number in shown):,}" if left else ""
    return Chart("HorizontalBar", title, [name for name, _ in shown], {"": [number for _, number in shown]}, note)


def write_report(path: Path, title: str, tables: Path, batches: Sequence[Batch], counts: "PipelineCounts") -> None:
    """Write the page. Raises EnvironmentProblem without pygal, or when the file cannot be written."""
    body = [f"<h1>{html.escape(title)}</h1>", _counts_table(counts)]
    body += [_figure(chart) for chart in charts_of(tables, batches)]
    if counts.silver > MOST_COUNTED:
        body.append(f"<p>Authors are counted up to {MOST_COUNTED:,} events.</p>")
    if not counts.rejects:
        body.append("<p>No row was rejected.</p>")
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style>{''.join(body)}</html>\n"
    )
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(page, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise EnvironmentProblem(f"the report {path} cannot be written: {error.strerror}", value=str(path)) from error


def require_charts() -> Any:
    """The charting package. Raises EnvironmentProblem when it is missing."""
    try:
        import pygal
    except ImportError as error:
        raise EnvironmentProblem("a report needs pygal", hint="pip install 'headwater[report]'") from error
    # pygal adds a finder for its map plug-ins, of a kind that makes Python 3.11 warn at every import, and that 3.12
    # ignores.
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]
    return pygal


def _counts_table(counts: "PipelineCounts") -> str:
    rows = (
        ("bronze", counts.bronze, counts.bronze_distinct),
        ("silver", counts.silver, counts.silver_distinct),
        ("rejects", counts.rejects, ""),
        ("gold", counts.gold, ""),
    )
    cells = "".join(f"<tr><td>{name}<td>{number:,}<td>{distinct}" for name, number, distinct in rows)
    return f"<table><tr><th>table<th>rows<th>distinct{cells}</table>"


def _figure(chart: Chart) -> str:
    drawn = getattr(require_charts(), chart.kind)(
        js=[],
        disable_xml_declaration=True,
        show_legend=len(chart.series) > 1,
        legend_at_bottom=True,
        x_label_rotation=30 if chart.kind != "HorizontalBar" else 0,
        height=160 + 24 * len(chart.labels) if chart.kind == "HorizontalBar" else 360,
        x_labels_major_count=12,
        show_minor_x_labels=chart.kind == "HorizontalBar" or len(chart.labels) <= 24,
        show_dots=False,
    )
    drawn.x_labels = list(chart.labels)
    for name, values in chart.series.items():
        drawn.add(name, list(values))
    picture = _SCRIPT.sub("", drawn.render(is_unicode=True))
    note = f"<figcaption>{html.escape(chart.note)}</figcaption>" if chart.note else ""
    return f"<figure><h2>{html.escape(chart.title)}</h2>{picture}{note}</figure>"
