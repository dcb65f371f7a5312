"""Plain values with named fields, like `dataclass(kw_only=True)`, but built on first use and not at import.

    class Limits(Record):
        most: int = 10
        secret: str = ""

A dataclass writes and compiles five functions for each class, and its module imports `inspect` and the parser of Python:
40 ms of the start of a server that has 150 in all. Here a class costs the reading of its annotations. Type checkers and
`dataclasses.replace`, `fields` and `asdict` take a record for a dataclass.

Not supported: fields without annotation, positional arguments, mutable defaults (all records would share them). Not for
values created by the million: those are compiled classes.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from typing import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[type], type]:
        return lambda base: base


_REQUIRED: Any = object()


class _DataclassFields:
    """`__dataclass_fields__`, made on first use: the `dataclasses` functions look for nothing else."""

    def __get__(self, record: "Record | None", kind: "type[Record]") -> dict[str, Any]:
        import dataclasses

        template = dataclasses.make_dataclass(
            kind.__name__,
            [
                (name, kind.__annotations__.get(name, Any), dataclasses.field(repr=name not in kind._secret))
                for name in kind._defaults
            ],
            kw_only=True,
        )
        return {field.name: field for field in dataclasses.fields(template)}


def meant(name: str, known: Iterable[str]) -> str:
    """What a wrong name was probably meant to be, as the end of an error's sentence; "" when nothing is like it."""
    from difflib import get_close_matches  # here: for errors only

    near = [other for other in known if other.startswith(name) or name in other.split("_")]
    found = list(dict.fromkeys([*get_close_matches(name, list(known), 2), *near]))[:3]
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """Base of the plain values. Class keywords: `frozen` (the default) refuses assignment, `secret` names fields that no
    `repr` shows.
    """

    _defaults: ClassVar[dict[str, Any]] = {}
    _demands: ClassVar[bool] = False  # whether some field has no default
    _frozen: ClassVar[bool] = True
    _secret: ClassVar[frozenset[str]] = frozenset()
    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Any]]
    else:
        __dataclass_fields__ = _DataclassFields()

    def __init_subclass__(cls, *, frozen: bool = True, secret: tuple[str, ...] = ()) -> None:
        cls._frozen = frozen
        cls._secret = cls._secret | frozenset(secret)
        cls._defaults = {**cls._defaults, **{name: getattr(cls, name, _REQUIRED) for name in cls.__annotations__}}
        cls._demands = _REQUIRED in cls._defaults.values()

    def __init__(self, **values: Any) -> None:
        state = self.__dict__
        state.update(self._defaults)
        state.update(values)
        if len(state) != len(self._defaults) or (self._demands and _REQUIRED in state.values()):
            self._refuse(values)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Overridden to check values (raises ConfigError) or to set fields that depend on others."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Of the fields, in the order of the class."""
        return tuple(cls._defaults)

    def items(self) -> list[tuple[str, Any]]:
        """Names and values, in the order of the class."""
        return list(self.__dict__.items())

    def replace(self, **changes: Any) -> Self:
        """A copy with other values in some fields."""
        copy = object.__new__(type(self))
        state = copy.__dict__
        state.update(self.__dict__)
        state.update(changes)
        if len(state) != len(self._defaults):
            self._refuse(changes)
        copy.__post_init__()
        return copy

    __replace__ = replace

    def _refuse(self, values: dict[str, Any]) -> None:
        name = type(self).__name__
        unknown = [field for field in values if field not in self._defaults]
        if unknown:
            raise TypeError(f"{name} has no field {unknown[0]!r}{meant(unknown[0], self._defaults)}")
        missing = [field for field, value in self.__dict__.items() if value is _REQUIRED]
        if missing:
            raise TypeError(f"{name} needs {', '.join(missing)}")

    def __setattr__(self, name: str, value: object) -> None:
        if self._frozen:
            raise AttributeError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return bool(self.__dict__ == other.__dict__) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items() if name not in self._secret)
        return f"{type(self).__name__}({shown})"
