"""`StreamingQueryProgress` with the names of our sources and sinks, and the metrics of our sources.

Spark calls them `PythonMicroBatchStream@…` and `PythonTable@…`: a Python data source cannot set what stands there, nor its
metrics. A listener cannot either, and would cost a call from the JVM for each micro-batch. So where pyspark makes its
objects of a progress (`lastProgress`, `recentProgress`, the events of a Python listener) the description and metrics of a
source are those that it reports in `latestOffset` (`headwater.spark.progress`), and the description of a sink is made of the
options with which its query was started. Only Python sees this; listeners in the JVM and `.json` have Spark's own text.
"""

import functools
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import SourceProgress, StreamingQueryProgress
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.spark.iggy.options import IggySinkOptions
    from headwater.spark.sink_options import SinkOptions

MOST_QUERIES = 1_000  # whose sinks are remembered; the oldest is forgotten first
_sinks: OrderedDict[str, str] = OrderedDict()


def name_in_progress() -> None:
    """Make pyspark's progress objects have our names, in this process. Repeated calls have no effect."""
    if hasattr(DataStreamWriter.format, "__wrapped__"):
        return
    _wrap_writer()
    for kind, rename in ((SourceProgress, name_source), (StreamingQueryProgress, name_sink)):
        for maker in ("fromJObject", "fromJson"):
            setattr(kind, maker, classmethod(_renamed(getattr(kind, maker).__func__, rename)))


def name_source(progress: dict[str, Any]) -> None:
    """Take name and metrics from what our source reports of itself; other sources stay as they are."""
    try:
        report = json.loads(progress["latestOffset"])
        name, metrics = report["source"], report["metrics"]
    except (ValueError, KeyError, TypeError):
        return
    progress["description"] = name
    progress["metrics"] = {**progress["metrics"], **metrics}


def name_sink(progress: dict[str, Any]) -> None:
    """The name of the sink, if the query was started in this process and writes to one of ours."""
    if (name := _sinks.get(str(progress["runId"]))) is not None:
        progress["sink"]["description"] = name


def sink_name(kind: str, given: Mapping[str, str]) -> str | None:
    """`nats[ORDERS@host:4222]`, `iggy[shop/payments@host:8090]`; None for another format, or options that are refused."""
    names: tuple[str, ...]
    parse: Callable[[Mapping[str, str]], SinkOptions | IggySinkOptions]
    if kind == "nats":
        from headwater.spark import sink_options as nats

        names, parse = nats.NAMES, nats.parse_sink_options
    elif kind == "iggy":
        from headwater.spark.iggy import options as iggy

        names, parse = iggy.SINK_NAMES, iggy.parse_sink_options
    else:
        return None
    known = {name.lower() for name in names}
    try:
        return parse({name: value for name, value in given.items() if name.lower() in known}).name
    except HeadwaterError:
        return None


def _wrap_writer() -> None:
    """Have a writer know its own format and options, which pyspark keeps in the JVM alone."""
    choose, option, options, start = (
        getattr(DataStreamWriter, name) for name in ("format", "option", "options", "start")
    )

    @functools.wraps(choose)
    def with_format(writer: Any, source: str) -> Any:
        _given(writer)[""] = source
        return choose(writer, source)

    @functools.wraps(option)
    def with_option(writer: Any, key: str, value: Any) -> Any:
        _given(writer)[key] = str(value)
        return option(writer, key, value)

    @functools.wraps(options)
    def with_options(writer: Any, **named: Any) -> Any:
        _given(writer).update({key: str(value) for key, value in named.items()})
        return options(writer, **named)

    @functools.wraps(start)
    def started(writer: Any, *arguments: Any, **named: Any) -> Any:
        query = start(writer, *arguments, **named)
        if (name := sink_name(_given(writer).get("", ""), _given(writer))) is not None:
            _sinks[str(query.runId)] = name
            while len(_sinks) > MOST_QUERIES:
                _sinks.popitem(last=False)
        return query

    for made in (with_format, with_option, with_options, started):
        setattr(DataStreamWriter, made.__name__, made)


def _given(writer: Any) -> dict[str, str]:
    """The options of a writer so far; under "" its format."""
    given: dict[str, str] = writer.__dict__.setdefault("_headwater_given", {})
    return given


def _renamed(make: Callable[..., Any], rename: Callable[[dict[str, Any]], None]) -> Callable[..., Any]:
    @functools.wraps(make)
    def making(kind: type, source: Any) -> Any:
        progress = make(kind, source)
        rename(progress)
        return progress

    return making
