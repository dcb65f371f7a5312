"""Filters that reduce what is read: bounds on `seq`, and one `subject`. Opt-in, `pushdown=true`, for batch reads.

A reader that merely defines `pushFilters` fails every read while `spark.sql.python.filterPushdown.enabled` is off, which is
the default; so it is a separate class. Each filter is also returned to Spark, which applies it again: here it only narrows
what is fetched, and can make a read smaller but never wrong.
"""

from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual
from pyspark.sql.types import StructType

from headwater.errors import SubjectError
from headwater.model.subject import validate_subject
from headwater.spark.options import SourceOptions
from headwater.spark.ranges import Range
from headwater.spark.reader import JetStreamBatchReader


class PushdownBatchReader(JetStreamBatchReader):
    """`spark.read` with bounds from the query's filters, which are reset at each planning."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._unfiltered = options
        self._low = 0
        self._high: int | None = None  # the first sequence above the filters' bounds

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._options, self._low, self._high = self._unfiltered, 0, None
        for each in filters:
            self._narrow(each)
            yield each

    def _narrow(self, wanted: Filter) -> None:
        match wanted:
            case EqualTo(("subject",), str() as subject):
                self._options = with_subject(self._options, subject)
            case GreaterThan(("seq",), int() as bound):
                self._low = max(self._low, bound + 1)
            case GreaterThanOrEqual(("seq",), int() as bound):
                self._low = max(self._low, bound)
            case LessThan(("seq",), int() as bound):
                self._end_at(bound)
            case LessThanOrEqual(("seq",), int() as bound):
                self._end_at(bound + 1)
            case EqualTo(("seq",), int() as bound):
                self._low = max(self._low, bound)
                self._end_at(bound + 1)
            case _:
                pass  # Spark applies every filter itself; these only reduce what is read

    def _end_at(self, bound: int) -> None:
        self._high = bound if self._high is None else min(self._high, bound)

    def _range(self, options: SourceOptions) -> Range[str]:
        whole = super()._range(options)
        end = whole.end if self._high is None else min(whole.end, max(self._high, whole.start))
        return replace(whole, start=min(max(whole.start, self._low), end), end=end)


def with_subject(options: SourceOptions, subject: str) -> SourceOptions:
    """The options with one filter subject; unchanged if they have a filter already, or the text is not a valid subject."""
    if options.subjects:
        return options
    try:
        return replace(options, subjects=(validate_subject(subject),))
    except SubjectError:
        return options


def chosen_reader(options: SourceOptions) -> type[JetStreamBatchReader]:
    return PushdownBatchReader if options.pushdown else JetStreamBatchReader
