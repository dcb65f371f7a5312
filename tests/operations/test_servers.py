"""Checks in the words of Nagios: how a figure becomes a state."""

import pytest

from headwater.operations.servers import CRITICAL, OK, UNKNOWN, WARNING, WORDS, Check, Limits, check_connection


@pytest.mark.parametrize(("value", "state"), [(1, OK), (5, OK), (5.1, WARNING), (10, WARNING), (11, CRITICAL)])
def test_a_figure_is_judged_by_its_limits(value: float, state: int) -> None:
    assert Limits(5, 10).judge(value) == state
    assert Limits().judge(value) == OK


def test_a_check_is_a_line_with_its_figures() -> None:
    assert check_connection(0.0125, Limits(0.01)).line() == "WARNING Connection: round trip of 12.50 ms | rtt=0.0125"
    assert Check("X", UNKNOWN, "no idea", {}).line() == "UNKNOWN X: no idea"
    assert [WORDS[state] for state in (OK, WARNING, CRITICAL, UNKNOWN)] == ["OK", "WARNING", "CRITICAL", "UNKNOWN"]
