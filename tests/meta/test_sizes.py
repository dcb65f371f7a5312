"""Files and functions stay small: what is long is either a table or two things.

The exceptions only ever shrink: a name that no longer needs its exception fails too.
"""

import ast

from support.checkout import SOURCE, name_of, tracked, tree_of

LONGEST_FILE = 700
LARGEST_FOLDER = 7000  # lines of a layer, the folders in it included
LONGEST_FUNCTION = 60
MOST_ARGUMENTS = 8  # that may be given by position

LONG_FILES: set[str] = set()
LARGE_FOLDERS: dict[str, int] = {}  # may shrink only
LONG_FUNCTIONS = {
    # Hot loops: a call per message is what they avoid.
    "src/headwater/exchange/router.py:route_here",
    "src/headwater/wire/client_ops.py:_parse_publish",
}
MANY_ARGUMENTS = {
    # The command line's library reads a command's options off its signature.
    "src/headwater/cli/nats_consumers.py:add_consumer",
    "src/headwater/cli/nats_consumers.py:edit_consumer",
    "src/headwater/cli/nats_streams.py:add_stream",
    "src/headwater/cli/nats_streams.py:edit_stream",
    # One for each field of the batch header that docs/log-format.md draws.
    "src/headwater/streams/log_format.py:__init__",
}


def test_no_file_is_longer_than_the_cap() -> None:
    long = {
        name_of(path)
        for path in tracked(".py", ".pxd", "hw")
        if len(path.read_text(encoding="utf-8").splitlines()) > LONGEST_FILE
    }
    assert long == LONG_FILES


def test_no_folder_is_larger_than_the_cap() -> None:
    sizes: dict[str, int] = {}
    package = SOURCE / "headwater"
    for path in tracked(".py", under=package):
        folder, *rest = path.relative_to(package).parts
        if rest:
            sizes[folder] = sizes.get(folder, 0) + len(path.read_text(encoding="utf-8").splitlines())
    large = {folder: size for folder, size in sizes.items() if size > LARGEST_FOLDER}
    assert set(large) == set(LARGE_FOLDERS)
    assert {folder: size for folder, size in large.items() if size > LARGE_FOLDERS[folder]} == {}


def test_no_function_of_the_product_is_longer_than_the_cap() -> None:
    long = set()
    for path in tracked(".py", under=SOURCE):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    long.add(f"{name_of(path)}:{node.name}")
    assert long == LONG_FUNCTIONS


def test_no_function_of_the_product_takes_more_arguments_than_the_cap() -> None:
    many = set()
    for path in tracked(".py", under=SOURCE):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [argument.arg for argument in [*node.args.posonlyargs, *node.args.args]]
                if len(names) - (names[:1] in (["self"], ["cls"])) > MOST_ARGUMENTS:
                    many.add(f"{name_of(path)}:{node.name}")
    assert many == MANY_ARGUMENTS


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"common", "helper", "helpers", "misc", "util", "utils"}
    assert [name_of(path) for path in tracked(".py") if path.stem in empty] == []


def test_every_module_of_the_product_says_what_it_is() -> None:
    silent = [name_of(path) for path in tracked(".py", under=SOURCE) if not ast.get_docstring(tree_of(path))]
    assert [name for name in silent if not name.endswith("__init__.py")] == []
