"""Values are NamedTuples or Records (docs/adr/0022-two-kinds-of-values.md); what is left of other ways only shrinks."""

import ast
from collections import Counter

from support.checkout import SOURCE, tracked, tree_of

DATACLASSES = {"iggy": 3, "iggy_wire": 76, "spark": 13, "spark_runtime": 1, "spark_tables": 2, "streams": 6}
"""By folder, at most so many."""

SLOTS_BY_HAND = {
    "client": 2,
    "client_connection": 2,
    "cloudevents": 4,
    "iggy": 1,
    "iggy_wire": 1,
    "jetstream_documents": 1,
    "model": 6,
    "spark": 1,
    "streams": 3,
    "durable_files": 2,
    "jetstream_state": 1,
    "wire": 1,
}
"""Classes that are made by the million, or often enough for their size to count."""

TYPED_DICTS = {"client_connection": 1, "server": 1}
"""The keywords of `connect` and `Broker`: types of calls, not values."""


def _found() -> dict[str, Counter[str]]:
    kinds: dict[str, Counter[str]] = {"dataclass": Counter(), "slots": Counter(), "TypedDict": Counter()}
    for path in tracked(".py", under=SOURCE / "headwater"):
        folder = path.relative_to(SOURCE / "headwater").parts[0]
        for node in ast.walk(tree_of(path)):
            if not isinstance(node, ast.ClassDef):
                continue
            decorators = {ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list}
            kinds["dataclass"][folder] += bool(decorators & {"dataclass", "dataclasses.dataclass"})
            kinds["TypedDict"][folder] += any(ast.unparse(base) == "TypedDict" for base in node.bases)
            assigned = {
                name.id
                for statement in node.body
                if isinstance(statement, ast.Assign)
                for name in statement.targets
                if isinstance(name, ast.Name)
            }
            kinds["slots"][folder] += "__slots__" in assigned
    return {kind: +counts for kind, counts in kinds.items()}


def test_no_value_is_declared_in_a_third_way() -> None:
    found = _found()
    assert found["dataclass"] <= Counter(DATACLASSES)
    assert found["slots"] <= Counter(SLOTS_BY_HAND)
    assert found["TypedDict"] <= Counter(TYPED_DICTS)


def test_a_folder_that_has_none_left_is_off_the_list() -> None:
    found = _found()
    assert set(DATACLASSES) == set(found["dataclass"])
    assert set(SLOTS_BY_HAND) == set(found["slots"])
