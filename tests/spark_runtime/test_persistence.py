"""How long another attempt is worth it."""

import pytest

from headwater.errors import HostUnknown, JetStreamError, RequestTimeout, TlsRefused, TransportError
from headwater.spark_runtime.persistence import UNKNOWN_HOST_PATIENCE, Persistence


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only pauses move; the pauses so far."""
    made: list[float] = []
    monkeypatch.setattr("headwater.spark_runtime.persistence.time.monotonic", lambda: sum(made))
    monkeypatch.setattr("headwater.spark_runtime.persistence.time.sleep", made.append)
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
    trying.succeeded()
    assert caplog.messages[50:] == ["range_interrupted stream=S: over after 50 failures, 5.0 s"]


def test_a_server_that_is_away_is_logged_once_and_when_it_is_back(
    pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    trying = Persistence(30.0, "planner_reconnects stream=S")
    trying.succeeded()
    for text in ["Connection refused"] * 9 + ["no answer"]:
        trying.wait_after(TransportError(text))
    trying.succeeded()
    trying.succeeded()
    assert caplog.messages == [
        "planner_reconnects stream=S: Connection refused",
        "planner_reconnects stream=S: no answer",
        "planner_reconnects stream=S: over after 10 failures, 13.1 s",
    ]


def test_the_last_failure_says_that_there_were_others(pauses: list[float]) -> None:
    trying = Persistence(0.1, "away")
    with pytest.raises(TransportError) as raised:
        for _ in range(9):
            trying.wait_after(TransportError("no answer"))
    assert str(raised.value) == f"no answer (the last of {len(pauses) + 1} failures)"


def test_a_host_that_has_no_address_is_waited_for_a_short_time_only(pauses: list[float]) -> None:
    trying = Persistence(1000.0, "away")
    with pytest.raises(HostUnknown) as raised:
        for _ in range(100):
            trying.wait_after(HostUnknown("the name does not resolve", hint="see the option servers"))
    assert UNKNOWN_HOST_PATIENCE < sum(pauses) < 2 * UNKNOWN_HOST_PATIENCE
    hint = f"(see the option servers; the last of {len(pauses) + 1} failures)"
    assert str(raised.value) == f"the name does not resolve {hint}"


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


def test_what_tls_refuses_is_final(pauses: list[float]) -> None:
    with pytest.raises(TlsRefused):
        Persistence(5.0, "refused").wait_after(TlsRefused("certificate verify failed"))
    assert pauses == []
