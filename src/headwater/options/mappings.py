"""Subject mappings of an account: they move messages that clients publish to other subjects, by weight. Pure.

The first mapping whose source matches applies, in the order of the configuration; its result is not mapped again.
`choose(n)` returns a number from 0 to n - 1.
"""

from collections.abc import Callable, Iterable

from headwater.model.subject_match import matches
from headwater.model.subject_transform import SubjectTransform
from headwater.options.access import MappingOptions


class Mapping:
    """One source and its destinations. Raises ValueError, with nats-server's texts, for an invalid mapping."""

    def __init__(self, options: MappingOptions, cluster: str) -> None:
        self.source = options.source.encode("utf-8", "surrogateescape")
        self._choices = self._weigh(options, cluster)

    def apply(self, subject: bytes, choose: Callable[[int], int]) -> bytes | None:
        """The new subject of a message whose subject matches; None if it keeps its own."""
        draw = choose(100) if self._choices and self._choices[0][0] < 100 else 0
        for limit, transform in self._choices:
            if draw < limit:
                return transform.apply(subject, choose)
        return None

    def _weigh(self, options: MappingOptions, cluster: str) -> list[tuple[int, SubjectTransform]]:
        """All destinations are checked, those for other clusters too."""
        made: dict[str, list[tuple[int, SubjectTransform]]] = {}
        seen: set[tuple[str, str]] = set()
        for destination, weight, where in options.destinations:
            if not 0 <= weight <= 100:
                raise ValueError("individual weights need to be <= 100")
            if (destination, where) in seen:
                raise ValueError(f'duplicate entry for "{destination}"')
            seen.add((destination, where))
            choices = made.setdefault(where, [])
            total = (choices[-1][0] if choices else 0) + weight
            if total > 100:
                raise ValueError("total weight needs to be <= 100")
            choices.append((total, SubjectTransform(options.source, destination)))
        return made.get(cluster) or made.get("", [])


class Mappings:
    """All mappings of an account. Raises ValueError as `Mapping` does."""

    def __init__(self, options: Iterable[MappingOptions], choose: Callable[[int], int], cluster: str = "") -> None:
        self._mappings = [Mapping(one, cluster) for one in options]
        self._choose = choose

    @property
    def sources(self) -> list[bytes]:
        """The subjects that are mapped."""
        return [mapping.source for mapping in self._mappings]

    def apply(self, subject: bytes) -> bytes | None:
        """The new subject of a message on `subject`; None if it keeps its own."""
        for mapping in self._mappings:
            if matches(mapping.source, subject):
                mapped = mapping.apply(subject, self._choose)
                return None if mapped == subject else mapped
        return None
