"""The cells that exist as parameters of a test: with their markers, and those that fail as strict xfails."""

from typing import TYPE_CHECKING

import pytest
from crossings.table import cells, failing, impossible

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


def parameters(*, spark: bool) -> "list[ParameterSet]":
    """Those with Spark at one end, or those without."""
    found = []
    for cell in cells():
        if impossible(cell) or spark != ("spark" in cell.markers):
            continue
        marks = [getattr(pytest.mark, name) for name in sorted(cell.markers)]
        if reason := failing(cell):
            marks.append(pytest.mark.xfail(reason=reason, strict=True))
        found.append(pytest.param(cell, id=cell.name, marks=marks))
    return found
