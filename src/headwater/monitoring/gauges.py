"""Gauges by name, and the conversion of documents to gauges, for /metrics."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.model.timestamps import parse_time
from headwater.monitoring.ledger import Document

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

SLICE = 200  # values written in one step, some 10 us each

_LABELLED = {"server_id", "server_name", "version", "domain", "leader", "name"}
_TIMES = {"start", "config_load_time"}


class Gauges:
    """Gauges by name, each made when it first has a value."""

    def __init__(self) -> None:
        self._families: dict[str, GaugeMetricFamily] = {}

    def set(self, name: str, labels: dict[str, str], value: float) -> None:
        """Set one value; values of one name may have different labels."""
        from prometheus_client.core import GaugeMetricFamily
        from prometheus_client.samples import Sample

        family = self._families.get(name)
        if family is None:
            family = self._families[name] = GaugeMetricFamily(name, name)
        family.samples.append(Sample(name, labels, value))

    def parts(self) -> "Iterator[Gauges]":
        """All gauges, one large family or several small ones at a time."""
        some = Gauges()
        size = 0
        for name, family in self._families.items():
            some._families[name] = family
            size += len(family.samples)
            if size >= SLICE:
                yield some
                some, size = Gauges(), 0
        yield some

    def collect(self) -> "Iterator[GaugeMetricFamily]":
        """For a registry of prometheus-client."""
        yield from self._families.values()


def flatten(gauges: Gauges, prefix: str, document: Document, server: dict[str, str]) -> None:
    """Numbers by their path; a few strings as labels of a gauge that is 1; times in seconds."""
    for key, value in document.items():
        name = "_".join(filter(None, f"{prefix}_{key}".replace("/", "_").split("_")))
        if isinstance(value, dict):
            flatten(gauges, name, value, server)
        elif isinstance(value, bool):
            continue
        elif isinstance(value, int | float):
            gauges.set(name, server, value)
        elif key in _TIMES:
            gauges.set(name, server, parse_time(str(value)) / 1e9)
        elif key in _LABELLED:
            gauges.set(name, {**server, "value": str(value)}, 1)
