"""Files and functions stay small: what is long is either a table or two things.

The exceptions only ever shrink: a name that no longer needs its exception fails too.
"""

import ast

from support.checkout import SOURCE, name_of, tracked, tree_of

LONGEST_FILE = 700
LONGEST_FUNCTION = 60

LONG_FILES: set[str] = set()
LONG_FUNCTIONS = {
    # Hot loops: a call per message is what they avoid.
    "src/headwater/broker/router.py:route_here",
    "src/headwater/wire/client_ops.py:_parse_publish",
}


def test_no_file_is_longer_than_the_cap() -> None:
    long = {
        name_of(path)
        for path in tracked(".py", ".pxd", "hw")
        if len(path.read_text(encoding="utf-8").splitlines()) > LONGEST_FILE
    }
    assert long == LONG_FILES


def test_no_function_of_the_product_is_longer_than_the_cap() -> None:
    long = set()
    for path in tracked(".py", under=SOURCE):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    long.add(f"{name_of(path)}:{node.name}")
    assert long == LONG_FUNCTIONS


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"common", "helper", "helpers", "misc", "util", "utils"}
    assert [name_of(path) for path in tracked(".py") if path.stem in empty] == []


def test_every_module_of_the_product_says_what_it_is() -> None:
    silent = [name_of(path) for path in tracked(".py", under=SOURCE) if not ast.get_docstring(tree_of(path))]
    assert [name for name in silent if not name.endswith("__init__.py")] == []
