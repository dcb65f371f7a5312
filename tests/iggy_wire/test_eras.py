"""Which client speaks how, by what it says at login."""

import pytest

from headwater.errors import IggyError
from headwater.iggy_wire.eras import Era, of_crate, of_login, of_protocol


@pytest.mark.parametrize(
    ("version", "era"),
    [
        (None, Era.A2),
        ("", Era.A2),
        ("0.5.0", Era.B),
        ("0.6.202", Era.B),
        ("0.7.0", Era.C1),
        ("0.8.0", Era.C2),
        ("0.9.0", Era.C3),
        ("0.10.0", Era.C3),
    ],
)
def test_the_login_tells(version: str | None, era: Era) -> None:
    assert of_login(version) is era


@pytest.mark.parametrize("version", ["1.0.0", "zero", "0", "0.x", "0.²", "0." + "9" * 5000])
def test_a_version_of_no_known_client_is_refused(version: str) -> None:
    with pytest.raises(IggyError) as caught:
        of_login(version)
    assert caught.value.name == "incompatible_protocol_version"


@pytest.mark.parametrize(
    ("minor", "patch", "era"),
    [(11, 0, Era.V), (11, 1, Era.V), (11, 1023, Era.V), (12, 0, Era.W), (12, 1, Era.W), (12, 2, Era.X)],
)
def test_the_protocol_of_a_modern_client_tells(minor: int, patch: int, era: Era) -> None:
    assert of_protocol(minor << 10 | patch) is era


@pytest.mark.parametrize("protocol", [10 << 10 | 1023, 12 << 10 | 3, 13 << 10, 1 << 20, 0])
def test_a_protocol_that_is_not_known_is_refused_with_those_that_are(protocol: int) -> None:
    with pytest.raises(IggyError) as caught:
        of_protocol(protocol)
    assert caught.value.name == "incompatible_protocol_version"
    assert "0.11 and 0.12.0 to 0.12.2" in caught.value.message


def test_what_changed_when() -> None:
    assert [era.first_id for era in Era] == [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert [era.name for era in Era if era.typed_keys] == ["C3", "V", "W", "X"]
    assert [era.name for era in Era if era.has_index_table] == ["C1", "C2", "C3"]


@pytest.mark.parametrize(
    ("version", "era"),
    [
        (None, Era.V),
        (11, Era.V),
        ("", Era.V),
        ("headwater", Era.V),
        ("0.11.0", Era.V),
        ("0.11.1-edge.1", Era.V),
        ("0.11.1-edge.2", Era.W),
        ("0.11.1-edge.5", Era.W),
        ("0.11.1-edge.7", Era.X),
        ("0.11.1-edge.10", Era.X),
        ("0.11.1", Era.X),
        ("0.12.0", Era.X),
        ("0.1234567890.0", Era.V),
    ],
)
def test_over_http_the_version_of_the_library_tells(version: object, era: Era) -> None:
    assert of_crate(version) is era
