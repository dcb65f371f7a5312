"""nats-py's public names and arguments, one by one, with what becomes of each in a program that uses our client.

The test fails for a name without a verdict; docs/migration-from-nats-py.md has the table (`docs/generate.py`).
"""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import nats.aio.client
import nats.errors
import nats.js.api
import nats.js.client
import nats.js.errors
import nats.js.kv
import nats.js.object_store
import nats.micro.request
import nats.micro.service
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as TheirSubscription

from headwater import errors
from headwater.client import jetstream_types, service
from headwater.client import key_value as key_values
from headwater.client import nats_py_arguments as arguments
from headwater.client import nats_py_modules as modules
from headwater.client import nats_py_names as names
from headwater.client import object_store as object_stores
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
    a name that the list lacks."""

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
_OF_INSTANCES = {
    "subject",
    "queue",
    "pending_bytes",
    "data",
    "reply",
    "id",
    "code",
    "description",
}  # attributes that a class does not show


def walk() -> Iterator[Verdict]:
    """Every public name of nats-py, and every argument of its methods that does not stand under the same name here."""
    yield from _connect()
    for pair in PAIRS:
        for name in dir(pair.theirs):
            if not name.startswith("_") and name.islower():
                yield from _name(pair, name)
    yield from _errors()
    for house in HOUSES:
        for theirs in house.theirs:
            for name, kind in _classes(theirs):
                yield from _class(house, name, kind)


class House(NamedTuple):
    """Modules of theirs and the one of ours that has their classes, with the tables about them. `elsewhere`: classes whose
    verdict is another module of ours, where their fields are looked for."""

    title: str
    theirs: tuple[ModuleType, ...]
    ours: ModuleType
    renamed: Mapping[str, str]
    advice: Mapping[str, str]
    attributes: Mapping[str, Mapping[str, str]]
    elsewhere: Mapping[str, type]


HOUSES = (
    House(
        "nats.js.api",
        (nats.js.api,),
        jetstream_types,
        modules.API,
        modules.API_ADVICE,
        modules.API_ATTRIBUTES,
        {
            "KeyValueConfig": key_values.BucketConfig,
            "ObjectStoreConfig": object_stores.StoreConfig,
            "ObjectInfo": object_stores.ObjectInfo,
            "ObjectLink": object_stores.ObjectLink,
        },
    ),
    House(
        "nats.micro",
        (nats.micro.service, nats.micro.request),
        service,
        {},
        modules.MICRO_ADVICE,
        modules.MICRO_ATTRIBUTES,
        {},
    ),
)
_OF_DOCUMENTS = {
    "from_response",
    "evolve",
    "as_dict",
    "to_dict",
    "from_dict",
}  # how they read and write JSON, which is no program's matter
_FIELDS_ELSEWHERE = {("KeyValueConfig", "direct"): "always allowed: leave it out"}


def _classes(module: ModuleType) -> Iterator[tuple[str, type]]:
    for name, kind in sorted(vars(module).items()):
        if inspect.isclass(kind) and kind.__module__ == module.__name__ and not name.startswith("_"):
            yield name, kind


def _errors() -> Iterator[Verdict]:
    for module in (nats.errors, nats.js.errors):
        for name, _ in _classes(module):
            if name in errors.NATS_PY:
                yield Verdict(module.__name__, name, "adapted", f"`{errors.NATS_PY[name]}`")
            elif name in errors.NATS_PY_ADVICE:
                yield Verdict(module.__name__, name, "refused", errors.NATS_PY_ADVICE[name])
            elif name in THE_SAME_ERRORS:
                yield Verdict(module.__name__, name, "same", THE_SAME_ERRORS[name])
            else:
                yield Verdict(module.__name__, name, "")


THE_SAME_ERRORS = {"AuthorizationError": "", "ProtocolError": "", "ServerError": "of the connection, not of JetStream"}


def _class(house: House, name: str, theirs: type) -> Iterator[Verdict]:
    ours = house.elsewhere.get(name) or vars(house.ours).get(house.renamed.get(name, name))
    if name in house.renamed:
        yield Verdict(house.title, name, "adapted", f"`{house.renamed[name]}`")
    elif name in house.advice:
        yield Verdict(house.title, name, "refused" if name not in vars(house.ours) else "adapted", house.advice[name])
    else:
        yield Verdict(house.title, name, "same" if ours is not None else "")
    if not isinstance(ours, type) or issubclass(theirs, str):
        return
    fields = {field.name for field in dataclasses.fields(theirs)} if dataclasses.is_dataclass(theirs) else set()
    fields |= {each for each in vars(theirs) if not each.startswith("_")} - _OF_DOCUMENTS
    advice = house.attributes.get(ours.__name__, {})
    for field in sorted(fields):
        if field in advice:
            yield Verdict(house.title, f"{name}.{field}", "refused", advice[field])
        elif (name, field) in _FIELDS_ELSEWHERE:
            yield Verdict(house.title, f"{name}.{field}", "adapted", _FIELDS_ELSEWHERE[name, field])
        else:
            known = (
                hasattr(ours, field)
                or field in _OF_INSTANCES
                or any(field in getattr(each, "__annotations__", {}) for each in ours.__mro__)
            )
            yield Verdict(house.title, f"{name}.{field}", "same" if known else "")


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
