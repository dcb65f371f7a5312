"""No circles of knowledge: a file never needs, through others, the file that needs it. Imports for type checkers count.

Two files that name each other are one thing in two files, and allowed. The known larger ones only ever shrink: a circle that
was cut fails here until it is taken off the list.
"""

import grimp

LARGEST = 2

KNOWN: list[set[str]] = []


def circles() -> list[set[str]]:
    """Every set of modules each of which is needed by each other one, without the package's name."""
    graph = grimp.build_graph("headwater", exclude_type_checking_imports=False, cache_dir=None)
    needs = {module: graph.find_upstream_modules(module) for module in graph.modules}
    left = set(graph.modules)
    found = []
    while left:
        module = left.pop()
        circle = {other for other in needs[module] if module in needs[other]} | {module}
        left -= circle
        if len(circle) > LARGEST:
            found.append({name.removeprefix("headwater.") for name in circle})
    return found


def test_no_circle_is_larger_than_two_files() -> None:
    assert sorted(map(sorted, circles())) == sorted(map(sorted, KNOWN))
