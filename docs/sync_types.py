"""Writes `client/sync_types.py` and `iggy_client/sync_types.py`: what the clients without asyncio give, for type checkers,
from the sources of the asyncio classes.

A method that is awaited there returns at once here; what is iterated with `async for`, or entered with `async with`, is so
with the plain words. Names, arguments, defaults and docstrings are the same, so nothing of it is written twice by hand.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parent.parent / "src" / "headwater"


class Client(NamedTuple):
    """The package, the head of the module written, and by class the modules that hold the one or, base first, the two of
    them; attributes that are set in methods; bases that are classes of the list."""

    package: str
    head: str
    classes: dict[str, tuple[str, ...]]
    attributes: dict[str, dict[str, str]]
    bases: dict[str, tuple[str, ...]]

    @property
    def target(self) -> Path:
        return SOURCE / self.package / "sync_types.py"


NATS_CLASSES = {
    "StreamMessage": ("stream_message",),
    "Consumption": ("consume",),
    "PullConsumer": ("pull",),
    "PushConsumer": ("push",),
    "OrderedConsumer": ("ordered",),
    "Publisher": ("publisher",),
    "AtomicBatch": ("atomic_batch",),
    "FastPublisher": ("fast_publisher",),
    "Counters": ("counters",),
    "Watch": ("key_value",),
    "KeyValue": ("key_value",),
    "ObjectWatch": ("object_store",),
    "ObjectStore": ("object_store",),
    "JetStream": ("jetstream_api", "jetstream"),
}
FOR_THE_LIBRARY = {
    "ask",
    "client",
    "forget_consumer",
    "forget_partitions",
    "key_of",
    "prefix",
    "request_read",
    "timeout",
}
NATS_ATTRIBUTES = {
    "StreamMessage": {"message": "Message"},
    "PullConsumer": {"stream": "str", "name": "str"},
    "PushConsumer": {"info": "ConsumerInfo | None"},
    "OrderedConsumer": {"pending": "int | None", "resets": "int"},
    "Publisher": {"acknowledged": "int", "duplicates": "int", "last_sequence": "int"},
    "AtomicBatch": {"ack": "BatchAck | None"},
    "FastPublisher": {
        "ack": "BatchAck | None",
        "acknowledged": "int",
        "lost": "int",
        "refused": "int",
        "refusal": "JetStreamError | None",
    },
    "Counters": {"stream": "str"},
    "Watch": {"caught_up": "bool"},
    "KeyValue": {"bucket": "str", "stream": "str"},
    "ObjectStore": {"bucket": "str", "stream": "str"},
}
ITERATION = "iteration"  # the module of `Iteration[Item]`, whose methods are shown in each class that it is a base of
PLAIN = {"__aiter__": "__iter__", "__aenter__": "__enter__", "__aexit__": "__exit__"}
NATS_HEAD = '''"""What `SyncClient.jetstream` gives, as type checkers see it; at run time each is a `sync.SyncProxy`.

Written by `docs/sync_types.py` from the asyncio classes of the same names, less `Sync`: change those, and run
`./hw check --fix`.
"""

'''


IGGY_HEAD = '''"""What `sync.connect` of the Iggy client gives, as type checkers see it; at run time each is a proxy.

Written by `docs/sync_types.py` from the asyncio classes of the same names, less `Sync`: change those, and run
`./hw check --fix`.
"""

'''
CLIENTS = (
    Client("client", NATS_HEAD, NATS_CLASSES, NATS_ATTRIBUTES, {}),
    Client(
        "iggy_client",
        IGGY_HEAD,
        {
            "Management": ("management",),
            "Groups": ("groups",),
            "Messages": ("messages",),
            "Users": ("users",),
            "TopicConsumer": ("consumer",),
            "Producer": ("producer",),
            "Client": ("client",),
        },
        {"TopicConsumer": {"stream": "Name", "topic": "Name"}, "Producer": {"stream": "Name", "topic": "Name"}},
        {"Messages": ("Management", "Groups"), "Client": ("Messages", "Users")},
    ),
)


def blocking(annotation: ast.expr | None, classes: Iterable[str]) -> str:
    """An annotation with the blocking classes in it."""
    assert annotation is not None
    text = ast.unparse(annotation)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        text = annotation.value
    text = (
        text.replace("AsyncIterator", "Iterator")
        .replace("Awaitable[object]", "object")
        .replace("asyncio.", "threading.")
    )
    return re.sub(rf"\b({'|'.join(classes)})\b", r"Sync\1", text)


def plain(docstring: str) -> str:
    """The docstring without asyncio's words."""
    return re.sub(r"`async (with|for)`", r"`\1`", docstring)


def is_shown(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    return (not node.name.startswith("_") or node.name in PLAIN) and (
        node.name not in FOR_THE_LIBRARY and not decorators & {"classmethod", "staticmethod"}
    )


def method(node: ast.FunctionDef | ast.AsyncFunctionDef, classes: Iterable[str]) -> str:
    """The blocking method, its body left out."""
    for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
        if argument.annotation is not None:
            argument.annotation = ast.Name(blocking(argument.annotation, classes))
    name = PLAIN.get(node.name, node.name)
    lines = [f"@{ast.unparse(decorator)}" for decorator in node.decorator_list]
    lines.append(f"def {name}({ast.unparse(node.args)}) -> {blocking(node.returns, classes)}:")
    text = plain(ast.get_docstring(node, clean=False) or "")
    lines.append(f'    """{text}"""' if text else "    ...")
    return "\n".join(lines)


def inherited(definition: ast.ClassDef, tree: ast.Module) -> list[ast.stmt]:
    """The body of `Iteration`, `tree`'s only class, for the item that the class iterates over; empty where it is no base."""
    for base in definition.bases:
        if isinstance(base, ast.Subscript) and ast.unparse(base.value) == "Iteration":
            found = re.sub(r"\bItem\b", ast.unparse(base.slice), ast.unparse(tree))
            return next(node.body for node in ast.parse(found).body if isinstance(node, ast.ClassDef))
    return []


def imports(package: str, trees: dict[str, ast.Module], body: str) -> list[str]:
    """The import of every name that the body uses, from where the asyncio modules have it."""
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    found: dict[str, str] = {name: f"from collections.abc import {name}" for name in ("Iterator",)}
    found["threading"] = "import threading"
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                found |= {alias.name: f"from {node.module} import {alias.name}" for alias in node.names}
        for statement in tree.body:
            target = statement.name if isinstance(statement, ast.ClassDef) else ""
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                target = statement.targets[0].id
            if target:
                found[target] = f"from headwater.{package}.{module} import {target}"
    lines = [line for name, line in found.items() if name in used or name == "Protocol"]
    return [*lines, "from typing import Protocol"]


def text(client: Client) -> str:
    """The module, formatted."""
    folder = SOURCE / client.package
    trees = {
        module: ast.parse((folder / f"{module}.py").read_text(encoding="utf-8"))
        for modules in client.classes.values()
        for module in modules
    }
    base = folder / f"{ITERATION}.py"
    if base.exists():
        trees[ITERATION] = ast.parse(base.read_text(encoding="utf-8"))
    parts = []
    for name, modules in client.classes.items():
        definitions = [
            node
            for module in modules
            for node in trees[module].body
            if isinstance(node, ast.ClassDef) and node.name in (name, f"{name}Api")
        ]
        members = [f"{key}: {kind}" for key, kind in client.attributes.get(name, {}).items()]
        members += [
            method(node, client.classes)
            for definition in definitions
            for node in [*(inherited(definition, trees[ITERATION]) if ITERATION in trees else []), *definition.body]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_shown(node)
        ]
        summary = plain((ast.get_docstring(definitions[-1]) or "").splitlines()[0])
        body = "\n\n".join(members).replace("\n", "\n    ")
        bases = ", ".join([*(f"Sync{base}" for base in client.bases.get(name, ())), "Protocol"])
        parts.append(f'class Sync{name}({bases}):\n    """{summary}"""\n\n    {body}\n')
    body = "\n\n".join(parts)
    return formatted("\n".join([client.head, *imports(client.package, trees, body), "", "", body]), client.target)


def formatted(source: str, target: Path) -> str:
    """As the formatter of this checkout leaves it."""
    for command in (["check", "--quiet", "--select=I,F401,UP037", "--fix"], ["format", "--quiet"]):
        name = ["--stdin-filename", str(target), "-"]
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *name], input=source, capture_output=True, text=True, check=True
        )
        source = done.stdout
    return source


def outdated(write: bool) -> list[Path]:
    """The modules that differ from the asyncio classes; with `write` they are brought up to date."""
    late = []
    for client in CLIENTS:
        fresh = text(client)
        if client.target.exists() and client.target.read_text(encoding="utf-8") == fresh:
            continue
        late.append(client.target)
        if write:
            client.target.write_text(fresh, encoding="utf-8")
    return late
