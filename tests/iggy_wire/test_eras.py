"""Which client speaks how, by what it says at login."""

import pytest

from headwater.errors import IggyError
from headwater.iggy_wire.eras import Era, of_login


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


@pytest.mark.parametrize("version", ["1.0.0", "zero", "0", "0.x"])
def test_a_version_of_no_known_client_is_refused(version: str) -> None:
    with pytest.raises(IggyError) as caught:
        of_login(version)
    assert caught.value.name == "incompatible_protocol_version"


def test_what_changed_when() -> None:
    assert [era.first_id for era in Era] == [1, 1, 1, 1, 1, 0, 0, 0]
    assert [era.name for era in Era if era.typed_keys] == ["C3", "V"]
    assert [era.name for era in Era if era.has_index_table] == ["C1", "C2", "C3"]
