"""The parsers follow the table of the protocol: every verb in every phase; without its row a verb is refused.

EXPECTED repeats the table on purpose, from the protocol documents: if the table loses or gains a row, the parsers
change with it, but EXPECTED does not.
"""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.wire import client_ops, route_ops, server_ops, verbs
from headwater.wire.memory import COMPILED
from headwater.wire.verbs import LAW, Phase, Sender, Verb, verbs_of

EXPECTED = {
    (Sender.CLIENT, Phase.AUTHENTICATING): "CONNECT",
    (Sender.CLIENT, Phase.OPEN): "CONNECT PUB HPUB SUB UNSUB PING PONG +OK -ERR INFO",
    (Sender.SERVER, Phase.GREETING): "INFO -ERR",
    (Sender.SERVER, Phase.OPEN): "INFO MSG HMSG PING PONG +OK -ERR",
    (Sender.PEER, Phase.UNDECIDED): "CONNECT INFO PING PONG +OK -ERR SUB UNSUB MSG PUB "
    "RS+ RS- RMSG HMSG LS+ LS- LMSG A+ A-",
    (Sender.PEER, Phase.V1): "CONNECT INFO PING PONG +OK -ERR SUB UNSUB MSG PUB",
    (Sender.PEER, Phase.V2): "CONNECT INFO PING PONG +OK -ERR RS+ RS- RMSG HMSG LS+ LS- LMSG A+ A-",
    (Sender.PEER, Phase.LEAF): "CONNECT INFO PING PONG +OK -ERR LS+ LS- LMSG HMSG",
}
DIALECTS = {
    Phase.UNDECIDED: route_ops.UNDECIDED,
    Phase.V1: route_ops.V1,
    Phase.V2: route_ops.V2,
    Phase.LEAF: route_ops.LEAF,
}
HEADERS = b"NATS/1.0\r\nA: 1\r\n\r\n"
SAMPLES = {
    Verb.INFO: b'INFO {"server_id":"N"}\r\n',
    Verb.CONNECT: b'CONNECT {"verbose":false}\r\n',
    Verb.PUB: b"PUB a.b 3\r\nxyz\r\n",
    Verb.HPUB: b"HPUB a.b %d %d\r\n%bxyz\r\n" % (len(HEADERS), len(HEADERS) + 3, HEADERS),
    Verb.SUB: b"SUB a.* 1\r\n",
    Verb.UNSUB: b"UNSUB 1\r\n",
    Verb.MSG: b"MSG a.b 1 3\r\nxyz\r\n",
    Verb.HMSG: b"HMSG a.b 1 %d %d\r\n%bxyz\r\n" % (len(HEADERS), len(HEADERS) + 3, HEADERS),
    Verb.PING: b"PING\r\n",
    Verb.PONG: b"PONG\r\n",
    Verb.OK: b"+OK\r\n",
    Verb.ERR: b"-ERR 'Unknown Protocol Operation'\r\n",
    Verb.RS_ADD: b"RS+ $G a.*\r\n",
    Verb.RS_REMOVE: b"RS- $G a.*\r\n",
    Verb.RMSG: b"RMSG $G a.b 3\r\nxyz\r\n",
    Verb.LS_ADD: b"LS+ c $G a.*\r\n",
    Verb.LS_REMOVE: b"LS- c $G a.*\r\n",
    Verb.LMSG: b"LMSG c $G a.b 0 3\r\nxyz\r\n",
    Verb.A_ADD: b"A+ $G\r\n",
    Verb.A_REMOVE: b"A- $G\r\n",
}
LEAF_SAMPLES = {
    **SAMPLES,
    Verb.LS_ADD: b"LS+ a.*\r\n",
    Verb.LS_REMOVE: b"LS- a.*\r\n",
    Verb.LMSG: b"LMSG a.b 3\r\nxyz\r\n",
}
CALLS = {
    Verb.INFO: "on_info",
    Verb.CONNECT: "on_connect",
    Verb.PUB: "on_publish",
    Verb.HPUB: "on_publish",
    Verb.SUB: "on_subscribe",
    Verb.UNSUB: "on_unsubscribe",
    Verb.MSG: "on_message",
    Verb.HMSG: "on_message",
    Verb.PING: "on_ping",
    Verb.PONG: "on_pong",
    Verb.OK: "on_ok",
    Verb.ERR: "on_error",
    Verb.RS_ADD: "on_interest",
    Verb.RS_REMOVE: "on_no_interest",
    Verb.RMSG: "on_message",
    Verb.LMSG: "on_message",
}
PEER_CALLS = {
    **CALLS,
    Verb.PUB: "on_message",
    Verb.LS_ADD: "on_leaf_interest",
    Verb.LS_REMOVE: "on_leaf_interest",
}
LEAF_CALLS = {**CALLS, Verb.LS_ADD: "on_interest", Verb.LS_REMOVE: "on_no_interest"}
IGNORED = {
    Sender.CLIENT: {Verb.OK},
    Sender.SERVER: set[Verb](),
    Sender.PEER: {Verb.OK, Verb.A_ADD, Verb.A_REMOVE},
}


def recording(base: type) -> tuple[Any, list[str]]:
    """A handler that records which of its methods are called."""
    calls: list[str] = []

    def noting(name: str) -> Callable[..., int]:
        def note(self: object, *_: object) -> int:
            calls.append(name)
            return 0

        return note

    implied = ("on_early_publish", "on_publishes", "on_publish_run", "on_message_run")
    names = [name for name in dir(base) if name.startswith("on_") and name not in implied]
    return type("Recorder", (base,), {name: noting(name) for name in names})(), calls


def received(
    sender: Sender, phase: Phase, chunks: list[bytes], modules: dict[Sender, ModuleType] | None = None
) -> list[str]:
    """The calls of a parser of `sender`'s ops for the chunks, on a connection in `phase`."""
    parser: Any
    if sender is Sender.CLIENT:
        module = (modules or {}).get(sender, client_ops)
        handler, calls = recording(module.ClientOpHandler)
        parser = module.ClientOpParser(handler, 4096, 1 << 20)
        parser.awaiting_connect = phase is Phase.AUTHENTICATING
    elif sender is Sender.PEER:
        module = (modules or {}).get(sender, route_ops)
        handler, calls = recording(module.RouteOpHandler)
        parser = module.RouteOpParser(handler)
        parser.dialect = DIALECTS[phase]
    else:
        module = (modules or {}).get(sender, server_ops)
        handler, calls = recording(module.ServerOpHandler)
        parser = module.ServerOpParser(handler)
        parser.greeting = phase is Phase.GREETING
    rest = bytearray()
    for chunk in chunks:
        rest += chunk
        del rest[: parser.parse(rest, 0, len(rest))]
    assert not rest
    return calls


def sample(phase: Phase, verb: Verb) -> bytes:
    """An op with this verb."""
    return (LEAF_SAMPLES if phase is Phase.LEAF else SAMPLES)[verb]


def wanted(sender: Sender, phase: Phase, verb: Verb) -> list[str]:
    """The calls for a legal op."""
    if phase is Phase.LEAF and verb is not Verb.OK:
        return [LEAF_CALLS[verb]]
    if verb in IGNORED[sender]:
        return []
    return [(PEER_CALLS if sender is Sender.PEER else CALLS)[verb]]


@st.composite
def spelt(draw: st.DrawFn, sample: bytes) -> list[bytes]:
    """The op with its verb in any case, in any chunks."""
    size = len(sample.split(b" ")[0].rstrip())
    letters = [draw(st.sampled_from((sample[at : at + 1].lower(), sample[at : at + 1]))) for at in range(size)]
    whole = b"".join(letters) + sample[size:]
    cuts = sorted(draw(st.sets(st.integers(1, len(whole) - 1), max_size=4)))
    return [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


@pytest.mark.parametrize(("sender", "phase"), EXPECTED)
@settings(max_examples=40)
@given(data=st.data())
def test_a_verb_is_taken_where_the_protocol_has_it_and_is_a_violation_elsewhere(
    sender: Sender, phase: Phase, data: st.DataObject
) -> None:
    for verb in Verb:
        chunks = data.draw(spelt(sample(phase, verb)))
        legal = verb.value.decode() in EXPECTED[sender, phase].split()
        expected = wanted(sender, phase, verb) if legal else ["on_violation"]
        assert received(sender, phase, chunks) == expected, (verb, chunks)


def test_the_law_has_the_rows_of_the_protocol_and_no_other() -> None:
    assert {key: set(text.split()) for key, text in EXPECTED.items()} == {
        key: {verb.value.decode() for verb in verbs_of(*key)} for key in {(sender, phase) for sender, phase, _ in LAW}
    }


@pytest.mark.skipif(
    COMPILED, reason="compiled parsers cannot be made anew; the interpreted run of the same source does it"
)
@pytest.mark.parametrize("row", LAW, ids=lambda row: "-".join(part.name.lower() for part in row))
def test_a_row_that_is_taken_out_of_the_law_is_a_verb_that_is_refused(
    row: tuple[Sender, Phase, Verb], monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, phase, verb = row
    assert received(sender, phase, [sample(phase, verb)]) == wanted(sender, phase, verb)
    monkeypatch.delitem(LAW, row)
    modules = {
        sender: interpreted({Sender.CLIENT: client_ops, Sender.SERVER: server_ops, Sender.PEER: route_ops}[sender])
    }
    assert received(sender, phase, [sample(phase, verb)], modules) == ["on_violation"]
    for other in LAW:
        assert received(other[0], other[1], [sample(other[1], other[2])], modules) == wanted(*other)


def interpreted(module: ModuleType) -> ModuleType:
    """The module loaded again from its source, with the current table; the compiled module read the table at import."""
    assert verbs.__file__ is not None
    path = Path(verbs.__file__).with_name(f"{module.__name__.rpartition('.')[2]}.py")
    name = f"anew_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    try:
        spec.loader.exec_module(made)
    finally:
        del sys.modules[name]
    return made
