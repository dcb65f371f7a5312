"""Records: values with named fields that cost nothing to import."""

import copy
import dataclasses
import pickle

import pytest

from headwater.model.record import Record


class Limits(Record, secret=("password",)):
    """What the tests make."""

    name: str
    most: int = 10
    password: str = ""


class Counter(Record, frozen=False):
    """One that changes."""

    count: int = 0


class Wide(Limits):
    """One more field."""

    wide: bool = True


def test_fields_take_their_defaults_and_records_compare_by_value() -> None:
    assert Limits(name="a") == Limits(name="a", most=10)
    assert Limits(name="a") != Limits(name="b")
    assert hash(Limits(name="a")) == hash(Limits(name="a"))
    assert Wide(name="a") != Limits(name="a")
    assert Wide(name="a", wide=False).most == 10


def test_a_frozen_record_cannot_be_assigned_to_and_another_can() -> None:
    with pytest.raises(AttributeError, match="most"):
        Limits(name="a").most = 3  # type: ignore[misc]
    counter = Counter()
    counter.count = 2
    assert counter == Counter(count=2)


@pytest.mark.parametrize("values", [{}, {"most": 1}, {"name": "a", "more": 1}])
def test_fields_that_are_missing_or_unknown_are_named(values: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="needs name" if "name" not in values else "no field 'more'"):
        Limits(**values)  # type: ignore[arg-type]


def test_an_unknown_field_is_answered_with_those_that_are_like_it() -> None:
    with pytest.raises(TypeError, match=r"^Limits has no field 'mast'; did you mean 'most'\?$"):
        Limits(name="a", mast=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Limits has no field 'pass'; did you mean 'password'\?$"):
        Limits(name="a").replace(**{"pass": 1})
    with pytest.raises(TypeError, match=r"^Limits has no field 'xyz'$"):
        Limits(name="a", xyz=1)  # type: ignore[call-arg]


def test_a_secret_is_not_in_the_repr() -> None:
    assert repr(Limits(name="a", password="s3cret")) == "Limits(name='a', most=10)"
    assert "s3cret" not in repr(Wide(name="a", password="s3cret"))


def test_a_copy_may_differ_and_is_checked_again() -> None:
    assert Limits(name="a").replace(most=3) == Limits(name="a", most=3)
    with pytest.raises(TypeError):
        Limits(name="a").replace(more=3)


def test_the_functions_for_dataclasses_take_a_record_for_one() -> None:
    record = Limits(name="a", password="p")
    assert dataclasses.is_dataclass(record)
    assert [field.name for field in dataclasses.fields(record)] == ["name", "most", "password"]
    assert dataclasses.replace(record, most=3) == Limits(name="a", most=3, password="p")
    assert dataclasses.asdict(record) == {"name": "a", "most": 10, "password": "p"}


def test_a_record_can_be_copied_and_pickled() -> None:
    record = Limits(name="a", most=4)
    assert copy.deepcopy(record) == record
    assert pickle.loads(pickle.dumps(record)) == record
