"""Docstrings of the public classes name every argument, the unit of every duration, and every error that is raised there.

Public are the names of `headwater.__all__` and the classes that a program gets from them. A method inherits what its class's
docstring says; names of the same meaning everywhere (`timeout`: seconds) are still to be named by one of the two.
"""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import headwater

REACHED = (
    "headwater.client.client.Client",
    "headwater.client.consume.Consumption",
    "headwater.client.jetstream.JetStream",
    "headwater.client.key_value.Entry",
    "headwater.client.key_value.KeyValue",
    "headwater.client.key_value.Watch",
    "headwater.client.object_store.ObjectStore",
    "headwater.client.ordered.OrderedConsumer",
    "headwater.client.publisher.Publisher",
    "headwater.client.pull.PullConsumer",
    "headwater.client.push.PushConsumer",
    "headwater.client.stream_message.StreamMessage",
    "headwater.client.sync.SyncClient",
    "headwater.testing.running.RunningBroker",
)
GIVEN = {
    "Client",
    "Consumption",
    "Entry",
    "JetStream",
    "KeyValue",
    "Message",
    "ObjectStore",
    "OrderedConsumer",
    "Publisher",
    "PullConsumer",
    "PushConsumer",
    "StreamMessage",
    "SyncClient",
    "Watch",
}  # fmt: skip  (never made by a program)
SECONDS = {"timeout", "heartbeat", "expires", "interval"}
OBVIOUS = re.compile(r"as_\w+|from_\w+")  # one for each kind: `HeaderValue` says it once for all of them


def _public() -> Iterator[tuple[str, Any, str]]:
    """Name, function and the docstring of its class."""
    named = {name: getattr(headwater, name) for name in headwater.__all__}
    for path in REACHED:
        module, _, name = path.rpartition(".")
        named[name] = getattr(importlib.import_module(module), name)
    for name, thing in named.items():
        if inspect.isfunction(thing):
            yield name, thing, ""
        if not inspect.isclass(thing):
            continue
        about = inspect.getdoc(thing) or ""
        for method, value in inspect.getmembers(thing):
            function = value.fget if isinstance(value, property) else value
            ours = inspect.isfunction(function) and function.__module__.startswith("headwater.")
            ours = ours and function.__module__ != "headwater.client.nats_py_names"  # docs/migration-from-nats-py.md
            ours = ours and (method != "__init__" or name not in GIVEN)
            if ours and (not method.startswith("_") or method == "__init__") and not OBVIOUS.fullmatch(method):
                yield f"{name}.{method}", function, about


def _raised(function: Any) -> set[str]:
    try:
        source = inspect.getsource(function)
    except OSError:  # made by a class decorator
        return set()
    tree = ast.parse(textwrap.dedent(source))
    calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
    names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    public = {name for name in names if name[0].isupper()}  # a helper raises what it returns
    return public - {"AssertionError", "NotImplementedError", "TypeError"}


def test_public_docstrings_name_arguments_units_and_errors() -> None:
    missing = []
    for name, function, about in _public():
        own = inspect.getdoc(function) if function.__doc__ else ""
        text = f"{about} {own}"
        if not own and not name.endswith("__init__"):
            missing.append(f"{name}: no docstring")
        kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        given = [one.name for one in inspect.signature(function).parameters.values() if one.kind not in kinds]
        silent = [one for one in given if one not in ("self", "cls") and not re.search(rf"\b{one}s?\b", text)]
        if silent:
            missing.append(f"{name}: {', '.join(silent)}")
        if SECONDS & set(given) and not re.search(r"\bs\b|second", text):
            missing.append(f"{name}: the unit of {', '.join(sorted(SECONDS & set(given)))}")
        errors = {error for error in _raised(function) if error not in text}
        if errors:
            missing.append(f"{name}: raises {', '.join(sorted(errors))}")
    assert missing == []
