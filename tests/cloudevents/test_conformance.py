"""Features and samples of the CloudEvents conformance project, over NATS (their README.md is beside them)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml  # type: ignore[import-untyped, unused-ignore]

from headwater.cloudevents import CloudEvent, NATSMessage, from_json, from_nats, to_binary, to_json, to_structured
from headwater.cloudevents.event import is_json_type

FOLDER = Path(__file__).parents[1] / "vectors" / "cloudevents-conformance"
Table = list[dict[str, str]]


class Scenario(NamedTuple):
    """One scenario with its examples filled in: the text of each step, with what stands below it."""

    name: str
    steps: dict[str, str | Table]


def read_table(lines: list[str]) -> Table:
    """The rows of a table by the names in its first line."""
    head, *rows = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines)
    return [dict(zip(head, row, strict=True)) for row in rows]


def scenarios(feature: str) -> Iterator[Scenario]:
    """Every scenario of a feature, outlines once for each line of their examples."""
    for text in re.split(r"^ *Scenario(?: Outline)?: ", feature, flags=re.MULTILINE)[1:]:
        body, _, examples = text.partition("Examples:\n")
        rows = read_table(examples.strip().splitlines()) if examples else [{}]
        for row in rows:
            filled = body
            for key, value in row.items():
                filled = filled.replace(f"<{key}>", value)
            name, *lines = filled.splitlines()
            yield Scenario(name, dict(read_steps(lines)))


def read_steps(lines: list[str]) -> Iterator[tuple[str, str | Table]]:
    at = 0
    while at < len(lines):
        step = lines[at].strip()
        at += 1
        start = at
        if at < len(lines) and lines[at].strip() == '"""':
            indent = len(lines[at]) - len(lines[at].lstrip())
            end = next(number for number in range(at + 1, len(lines)) if lines[number].strip() == '"""')
            yield step, "\n".join(line[indent:] for line in lines[at + 1 : end])
            at = end + 1
        elif at < len(lines) and lines[at].strip().startswith("|"):
            while at < len(lines) and lines[at].strip().startswith("|"):
                at += 1
            yield step, read_table(lines[start:at])


def headers_of(pairs: dict[str, str]) -> list[tuple[str, str]]:
    """Headers of HTTP or Kafka as those of NATS: the content type of binary mode is an attribute here."""
    structured = pairs.get("content-type", "").startswith("application/cloudevents")
    moved = []
    for name, value in pairs.items():
        if name.startswith(("ce-", "ce_")):
            moved.append(("ce-" + name[3:], value))
        elif name == "content-type":
            moved.append(("Content-Type", value) if structured else ("ce-datacontenttype", value.replace(" ", "%20")))
    return moved


def message_of(scenario: Scenario) -> NATSMessage:
    """The message that a scenario begins with."""
    request = scenario.steps.get("Given an HTTP request")
    if isinstance(request, str):
        head, _, body = request.partition("\n\n")
        pairs = dict(line.split(": ", 1) for line in head.splitlines()[1:])
        return NATSMessage(headers_of({name.lower(): value for name, value in pairs.items()}), body.encode())
    payload, table = scenario.steps["Given a Kafka message with payload:"], scenario.steps["And Kafka headers:"]
    assert isinstance(payload, str)
    assert not isinstance(table, str)
    return NATSMessage(headers_of({row["key"].lower(): row["value"] for row in table}), payload.encode())


FEATURES = [
    pytest.param(scenario, id=f"{path.stem}-{scenario.name}")
    for path in sorted(FOLDER.glob("*.feature"))
    for scenario in scenarios(path.read_text())
]
SAMPLES = [
    sample
    for name in ("v1.yaml", "v1_minimum.yaml")
    for sample in yaml.load_all((FOLDER / name).read_text(), yaml.BaseLoader)
]


def test_the_features_have_the_scenarios_that_they_had() -> None:
    assert len(FEATURES) == 7
    assert len(SAMPLES) == 8


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("scenario", FEATURES)
def test_scenario_holds_over_nats(scenario: Scenario, strict: bool) -> None:
    event = from_nats(message_of(scenario), strict)
    table, data = (
        scenario.steps["Then the attributes are:"],
        scenario.steps["And the data is equal to the following JSON:"],
    )
    assert not isinstance(table, str)
    assert isinstance(data, str)
    assert dict(event.attributes) == {row["key"]: row["value"] for row in table}
    assert event.data == json.loads(data)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: str(sample["ContextAttributes"]["id"]))
def test_sample_comes_back_from_either_mode(sample: dict[str, Any]) -> None:
    context = dict(sample["ContextAttributes"])
    extensions = {name: value.strip() for name, value in context.pop("Extensions", {}).items()}
    attributes = context | extensions
    content_type = attributes.get("datacontenttype")
    text = sample["Data"].strip()
    is_json = content_type is None or is_json_type(content_type)
    event = CloudEvent.from_attributes(attributes, msgspec.Raw(text.encode()) if is_json else text)
    assert event.data == (json.loads(text) if is_json else text)
    for come in (from_nats(to_binary(event)), from_nats(to_structured(event)), from_json(to_json(event))):
        assert come.data == event.data
        assert {**event.attributes, **come.attributes} == dict(come.attributes)
