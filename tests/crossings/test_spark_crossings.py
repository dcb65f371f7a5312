"""The cells of the table in which Spark reads or writes: one session, and a job to write and two to read for each place."""

import pytest
from crossings.run import OutcomesOf
from crossings.table import Cell
from crossings.verdicts import parameters

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.parametrize("cell", parameters(spark=True))
def test_what_goes_in_here_comes_out_there(cell: Cell, outcomes_of: OutcomesOf) -> None:
    outcomes_of(cell.place).check(cell)
