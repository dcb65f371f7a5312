"""How long another attempt is worth it."""

import pytest

from headwater.errors import JetStreamError, RequestTimeout, TransportError
from headwater.spark.persistence import Persistence


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only pauses move; the pauses so far."""
    made: list[float] = []
    monkeypatch.setattr("headwater.spark.persistence.time.monotonic", lambda: sum(made))
    monkeypatch.setattr("headwater.spark.persistence.time.sleep", made.append)
    return made


def test_pauses_double_up_to_a_bound_until_the_patience_is_over(pauses: list[float]) -> None:
    trying = Persistence(5.0, "away")
    with pytest.raises(TransportError, match="no answer"):
        for _ in range(100):
            trying.wait_after(TransportError("no answer"))
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]


def test_progress_begins_anew(pauses: list[float], caplog: pytest.LogCaptureFixture) -> None:
    trying = Persistence(1.0, "range_interrupted stream=S")
    for position in range(50):
        trying.wait_after(RequestTimeout("slow"), f" position={position}")
        trying.progressed()
    assert pauses == [0.1] * 50
    assert caplog.messages[7] == "range_interrupted stream=S position=7: slow"


@pytest.mark.parametrize(
    ("code", "err_code", "passes"), [(503, 10008, True), (429, 10167, True), (503, 10077, False), (404, 10059, False)]
)
def test_a_refusal_is_final_unless_the_server_is_only_not_ready(
    code: int, err_code: int, passes: bool, pauses: list[float]
) -> None:
    error = JetStreamError(code, err_code, "said no")
    if passes:
        Persistence(5.0, "refused").wait_after(error)
        assert pauses == [0.1]
    else:
        with pytest.raises(JetStreamError, match="said no"):
            Persistence(5.0, "refused").wait_after(error)
