"""Every series that the dashboard and the alerts name is in a real scrape, with the labels that they select by.

The tools of Grafana and Prometheus (promtool) run where they are installed, and are skipped by name elsewhere.
"""

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from support.monitored import monitored, work

from headwater.options.cluster import ClusterOptions
from headwater.server.leafnodes import spoke_of

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
DASHBOARD = DEPLOY / "grafana" / "headwater.json"
SERIES = re.compile(r"\b(?:gnatsd|jetstream|headwater)_\w+")
SELECTED = re.compile(r"(\w+)\{([^}]*)\}")


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The labels of each series of a broker with a stream, a consumer and a cluster, and of one with a hub to join."""

    async def scrape(**fields: Any) -> str:
        async with monitored(jetstream=True, store_dir=tmp_path_factory.mktemp("js"), **fields) as server:
            link = await asyncio.to_thread(work, server.broker.port)
            body = (await server.ask("/metrics")).body.decode()
            await asyncio.to_thread(link.close)
            return body

    text = asyncio.run(scrape(cluster=ClusterOptions(name="hw", host="127.0.0.1")))
    text += asyncio.run(scrape(leafnodes=spoke_of("nats://127.0.0.1:1", "")))
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def alerts() -> list[dict[str, object]]:
    document = yaml.safe_load(ALERTS.read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> list[str]:
    made = [str(rule["expr"]) for rule in alerts()]
    for panel in panels():
        made += [target["expr"] for target in panel.get("targets", ())]  # type: ignore[attr-defined]
    variables = json.loads(DASHBOARD.read_text())["templating"]["list"]
    return made + [one["query"]["query"] for one in variables if one["type"] == "query"]


def test_every_series_that_they_name_is_scraped(scraped: dict[str, set[str]]) -> None:
    named = {name for expression in expressions() for name in SERIES.findall(expression)}
    assert len(named) > 30
    assert sorted(named - scraped.keys()) == []


def test_every_label_that_they_select_by_is_there(scraped: dict[str, set[str]]) -> None:
    for expression in expressions():
        for name, selector in SELECTED.findall(expression):
            labels = {part.split("=")[0].rstrip("!~ ") for part in selector.split(",")}
            assert name == "up" or labels <= scraped[name], expression


def test_every_alert_says_what_is_wrong_and_how_bad_it_is() -> None:
    names = [str(rule["alert"]) for rule in alerts()]
    assert len(set(names)) == len(names)
    for rule in alerts():
        assert rule["labels"]["severity"] in ("critical", "warning")  # type: ignore[index]
        assert rule["annotations"]["summary"]  # type: ignore[index]


def test_no_panel_lies_on_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at: dict[str, int] = panel["gridPos"]  # type: ignore[assignment]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed: it judged no alert and no panel"
)
def test_promtool_takes_the_alerts_and_what_the_panels_ask(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{at}", "expr": re.sub(r"\$__\w+", "5m", expression)}
        for at, expression in enumerate(expressions())
        if not expression.startswith("label_values")  # Grafana's own
    ]
    panels_as_rules = tmp_path / "panels.yaml"
    panels_as_rules.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    for path in (ALERTS, panels_as_rules):
        checked = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed: it fired no alert")
def test_an_alert_fires_when_a_broker_is_gone_and_not_before(tmp_path: Path) -> None:
    labels = {"job": "headwater", "instance": "a:8222"}
    fired = {
        "exp_labels": {**labels, "severity": "critical"},
        "exp_annotations": {"summary": "a:8222 does not answer"},
    }
    reported = [
        {"eval_time": "8m", "alertname": "HeadwaterDown"},
        {"eval_time": "25m", "alertname": "HeadwaterDown", "exp_alerts": [fired]},
    ]
    series = [{"series": 'up{job="headwater", instance="a:8222"}', "values": "1x9 0x20"}]
    one = {"interval": "1m", "input_series": series, "alert_rule_test": reported}
    path = tmp_path / "tests.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [one]}))
    checked = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
