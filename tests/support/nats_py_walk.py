"""nats-py's public names and arguments, one by one, with what becomes of each in a program that uses our client.

The test fails for a name without a verdict; docs/migration-from-nats-py.md has the table (`docs/generate.py`).
"""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import nats.aio.client
import nats.js.client
import nats.js.kv
import nats.js.object_store
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as TheirSubscription

from headwater.client import nats_py_arguments as arguments
from headwater.client import nats_py_names as names
from headwater.client.client import Client
from headwater.client.jetstream import JetStream
from headwater.client.key_value import KeyValue
from headwater.client.nats_py_arguments import NOTHING
from headwater.client.object_store import ObjectStore
from headwater.client.options import ClientOptions
from headwater.client.stream_message import StreamMessage
from headwater.client.subscription import Subscription


class Verdict(NamedTuple):
    """What becomes of `name` (with an argument: `name(argument=)`) of nats-py's `kind`; `kept` is one of `KINDS`, "" for
    a name that nobody has thought of."""

    kind: str
    name: str
    kept: str
    here: str = ""


KINDS = ("same", "adapted", "refused")


class Pair(NamedTuple):
    """A class of theirs and the one of ours that takes its place, with the tables about them."""

    theirs: type
    ours: type
    aliases: dict[str, Any]
    advice: dict[str, str]
    arguments: dict[str, arguments.Theirs]
    here: Mapping[str, str] = NOTHING
    """Names of theirs that are aliases of methods of ours."""


PAIRS = (
    Pair(nats.aio.client.Client, Client, names.CLIENT, names.CLIENT_ADVICE, arguments.CLIENT),
    Pair(TheirSubscription, Subscription, names.SUBSCRIPTION, {}, arguments.SUBSCRIPTION, {"next_msg": "next"}),
    Pair(nats.js.client.JetStreamContext, JetStream, {}, names.JETSTREAM_ADVICE, arguments.JETSTREAM),
    Pair(Msg, StreamMessage, names.STREAM_MESSAGE, names.STREAM_MESSAGE_ADVICE, {}),
    Pair(nats.js.kv.KeyValue, KeyValue, {}, names.KEY_VALUE_ADVICE, arguments.KEY_VALUE),
    Pair(
        nats.js.object_store.ObjectStore,
        ObjectStore,
        names.OBJECT_STORE,
        names.OBJECT_STORE_ADVICE,
        arguments.OBJECT_STORE,
        {"get_info": "info", "list": "objects"},
    ),
)
_OF_INSTANCES = {"subject", "queue", "pending_bytes", "data", "reply"}  # attributes that a class does not show


def walk() -> Iterator[Verdict]:
    """Every public name of nats-py, and every argument of its methods that does not stand under the same name here."""
    yield from _connect()
    for pair in PAIRS:
        for name in dir(pair.theirs):
            if not name.startswith("_") and name.islower():
                yield from _name(pair, name)


def _connect() -> Iterator[Verdict]:
    parameters = set(inspect.signature(nats.aio.client.Client.connect).parameters) - {"self"}
    for name in sorted(parameters):
        if name in names.RENAMED_ARGUMENTS:
            yield Verdict("connect", name, "adapted", f"`{names.RENAMED_ARGUMENTS[name]}=`")
        elif name in names.NEGATED_ARGUMENTS:
            yield Verdict("connect", name, "adapted", f"`{names.NEGATED_ARGUMENTS[name]}=`, the other way round")
        elif name in names.REFUSED_ARGUMENTS:
            yield Verdict("connect", name, "refused", names.REFUSED_ARGUMENTS[name])
        elif name in names.IGNORED_ARGUMENTS:
            yield Verdict("connect", name, "adapted", "taken, and without effect: there is nothing to set")
        elif name in names.CALLBACKS:
            event = names.CALLBACKS[name].__name__
            yield Verdict("connect", name, "adapted", f"`event_callback=` gets a `{event}`")
        elif name == "error_cb":
            yield Verdict("connect", name, "adapted", "`error_callback=`")
        elif name == "max_reconnect_attempts":
            yield Verdict("connect", name, "adapted", "`reconnect_attempts=`; None: for ever")
        elif name in ClientOptions.__dataclass_fields__ or name == "servers":
            yield Verdict("connect", name, "same")
        else:
            yield Verdict("connect", name, "")


def _name(pair: Pair, name: str) -> Iterator[Verdict]:
    kind = pair.ours.__name__
    if name in pair.advice and (name in pair.aliases or not callable(getattr(pair.ours, name, None))):
        yield Verdict(kind, name, "refused", pair.advice[name])
        return
    if not hasattr(pair.ours, name) and name not in _OF_INSTANCES:
        yield Verdict(kind, name, "")
        return
    method = pair.here.get(name, name)
    yield Verdict(kind, name, "same", f"also `{method}`" if method != name else "")
    theirs, ours = getattr(pair.theirs, name), getattr(pair.ours, method, None)
    if callable(theirs) and callable(ours):
        yield from _arguments(kind, name, theirs, ours, pair.arguments.get(method, arguments.Theirs("")))


def _arguments(kind: str, name: str, theirs: Any, ours: Any, known: arguments.Theirs) -> Iterator[Verdict]:
    parameters = inspect.signature(ours).parameters
    for parameter in inspect.signature(theirs).parameters.values():
        argument = parameter.name
        if argument == "self" or argument in parameters:
            continue
        if parameter.kind is parameter.VAR_KEYWORD and argument not in known.renamed:
            continue
        spelled = f"{name}({'**' if parameter.kind is parameter.VAR_KEYWORD else ''}{argument}=)"
        if argument in known.renamed:
            yield Verdict(kind, spelled, "adapted", f"`{known.renamed[argument]}`")
        elif argument in known.refused:
            yield Verdict(kind, spelled, "refused", known.refused[argument])
        else:
            yield Verdict(kind, spelled, "")


def misplaced() -> Iterator[str]:
    """Methods where an argument that is given by position would be taken for another one."""
    for pair in PAIRS:
        for name in dir(pair.theirs):
            method = pair.here.get(name, name)
            ours = inspect.getattr_static(pair.ours, method, None)
            if name.startswith("_") or not inspect.isfunction(ours) or not callable(getattr(pair.theirs, name)):
                continue
            known = pair.arguments.get(method, arguments.Theirs(""))
            if known.build is not None:
                continue
            spelled = {"payload": "data", **known.renamed}  # `Client.publish` knows payload itself
            order = [spelled.get(each, each) for each in inspect.signature(getattr(pair.theirs, name)).parameters]
            taken = [
                each.name
                for each in inspect.signature(ours).parameters.values()
                if each.kind is each.POSITIONAL_OR_KEYWORD
            ]
            listed = ["self", *(known.renamed.get(each, each) for each in known.order.split())]
            ours_then_theirs = [*taken, *listed[len(taken) :]]
            if any(mine != their for mine, their in zip(ours_then_theirs, order, strict=False)):
                yield f"{pair.ours.__name__}.{name}: {order} is taken as {ours_then_theirs}"
