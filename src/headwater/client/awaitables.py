"""Results that are there already: awaiting one costs no coroutine, no Future, no turn of the loop."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, Self, TypeVar, cast

T = TypeVar("T")


class Ready(Generic[T]):
    """`await Ready(value)` is `value`, at once."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def __await__(self) -> Generator[Any, Any, T]:
        return cast("Generator[Any, Any, T]", self)  # an iterator is all that `await` asks for

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        raise StopIteration(self._value)


class Later(Generic[T]):
    """Awaits what `begin()` gives, and calls it only then: one that nobody awaits leaves no coroutine behind."""

    __slots__ = ("_begin",)

    def __init__(self, begin: Callable[[], Awaitable[T]]) -> None:
        self._begin = begin

    def __await__(self) -> Generator[Any, None, T]:
        return self._begin().__await__()
