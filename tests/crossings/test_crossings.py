"""Every cell of the table of crossings (`table.py`), each with a verdict of its own; docs/crossings.md shows them all."""

import pytest
from crossings.run import OutcomesOf
from crossings.table import Cell
from crossings.verdicts import parameters


@pytest.mark.parametrize("cell", parameters(spark=False))
def test_what_goes_in_here_comes_out_there(cell: Cell, outcomes_of: OutcomesOf) -> None:
    outcomes_of(cell.place).check(cell)
