"""No class knows everything: at most 15 fields set on `self`, and fewer than 30 public methods.

Records (options, documents of a protocol) are not counted: they declare a field for each of the protocol and set none. The
numbers of KNOWN are ceilings, so they and the list only shrink: a class that is within the limits is to be taken off.
"""

import ast

from support.checkout import SOURCE, name_of, tracked, tree_of

MOST_FIELDS = 15
MOST_METHODS = 29

KNOWN = {
    # What a part of its own would cost, or why it would have no name.
    "client/sync_types.py:SyncJetStream": (0, 33, "the methods of two asyncio classes, one for one; generated"),
    "client_connection/message_queue.py:MessageQueue": (16, 14, "one too many; each is read in C for every message"),
    "model/typed_header.py:HeaderValue": (0, 33, "a constructor and an accessor for each kind of Iggy's headers"),
    "net/link.py:Link": (
        21,
        30,
        "an asyncio protocol: ten methods are the transport's callbacks, five fields Endpoint's",
    ),
    "server/broker.py:Broker": (20, 14, "the root of the composition: a field for each part that it starts"),
    "columns/event_columns.py:EventDecoder": (
        28,
        20,
        "a column for each attribute of an event, filled row by row in C",
    ),
    "wire/columns.py:ColumnDecoder": (
        31,
        15,
        "the columns of a batch and the state of its range, filled row by row in C",
    ),
    "wire/row_frames.py:RowFrames": (20, 5, "the columns of a batch, read row by row in C"),
    "streams/log.py:Log": (
        13,
        41,
        "the surface of its writer, its reader and its live offsets; each is a class of its own",
    ),
}
"""By file and class: fields, public methods, and why the class is larger."""


def _fields(node: ast.ClassDef) -> set[str]:
    """The attributes that its methods set on `self`."""
    return {
        part.attr
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        for part in ast.walk(method)
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
        if isinstance(part.value, ast.Name) and part.value.id == "self"
    }


def _methods(node: ast.ClassDef) -> set[str]:
    """Its public methods and properties, without those that it inherits."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {method.name for method in node.body if isinstance(method, kinds) and not method.name.startswith("_")}


def _large_classes() -> dict[str, tuple[int, int]]:
    found = {}
    for path in tracked(".py", under=SOURCE):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                fields, methods = len(_fields(node)), len(_methods(node))
                if fields > MOST_FIELDS or methods > MOST_METHODS:
                    found[f"{name_of(path).removeprefix('src/headwater/')}:{node.name}"] = fields, methods
    return found


def test_no_class_has_more_fields_or_methods_than_the_cap() -> None:
    nothing = (MOST_FIELDS, MOST_METHODS, "")
    over = {
        name: size
        for name, size in _large_classes().items()
        if size[0] > max(KNOWN.get(name, nothing)[0], MOST_FIELDS)
        or size[1] > max(KNOWN.get(name, nothing)[1], MOST_METHODS)
    }
    assert over == {}


def test_a_class_within_the_caps_is_no_exception() -> None:
    assert set(KNOWN) - set(_large_classes()) == set()
