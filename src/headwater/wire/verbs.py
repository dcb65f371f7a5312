"""The rules of the NATS protocol as a table: which sender may use which verb in which phase, and what the verb means.

A missing key is the error: a verb without a row is an unknown operation (or, while the server still waits for CONNECT,
an authorization violation). The three parsers (`client_ops`, `server_ops`, `route_ops`) look every verb up in it by
sender and phase (`spellings`), so a verb whose row is deleted is refused; `docs/protocol.md` is generated from it.
Sources: client protocol document; nats-server 2.15.1 for ops that it does not cover (PONG, +OK, -ERR and INFO sent by a
client); for routes the cluster protocol document, and the ops that gnatsd 1.4.1 and nats-server 2.15.1 write.
"""

from enum import Enum
from typing import NamedTuple

SUSPEND: int = 2  # a handler's result for CONNECT: pause parsing, and keep the bytes after the op


class Sender(Enum):
    """The sender of an op: either end of a client connection, or the broker at the other end of a route or leaf node
    link.
    """

    CLIENT = "client"
    SERVER = "server"
    PEER = "peer"


class Phase(Enum):
    """The state of a connection. The last four are the dialects of a connection between brokers."""

    GREETING = "greeting"  # the server sends first
    AUTHENTICATING = "authenticating"  # the server requires a CONNECT before anything else
    OPEN = "open"
    UNDECIDED = "undecided"  # ops of both dialects are legal
    V1 = "v1"  # gnatsd up to 1.4
    V2 = "v2"  # nats-server 2.x
    LEAF = "leaf"  # between a hub and its leaf nodes, from the first byte on


class Verb(Enum):
    """The spelling on the wire; matched in any case."""

    INFO = b"INFO"
    CONNECT = b"CONNECT"
    PUB = b"PUB"
    HPUB = b"HPUB"
    SUB = b"SUB"
    UNSUB = b"UNSUB"
    MSG = b"MSG"
    HMSG = b"HMSG"
    PING = b"PING"
    PONG = b"PONG"
    OK = b"+OK"
    ERR = b"-ERR"
    RS_ADD = b"RS+"
    RS_REMOVE = b"RS-"
    RMSG = b"RMSG"
    LS_ADD = b"LS+"
    LS_REMOVE = b"LS-"
    LMSG = b"LMSG"
    A_ADD = b"A+"
    A_REMOVE = b"A-"


class Rule(NamedTuple):
    """A verb in one phase: its arguments, and its meaning to the receiver."""

    arguments: str
    meaning: str


LAW: dict[tuple[Sender, Phase, Verb], Rule] = {
    (Sender.SERVER, Phase.GREETING, Verb.INFO): Rule("{json}", "the server introduces itself; the client may CONNECT"),
    (Sender.SERVER, Phase.GREETING, Verb.ERR): Rule("'<text>'", "the server refuses the connection and closes it"),
    (Sender.CLIENT, Phase.AUTHENTICATING, Verb.CONNECT): Rule(
        "{json}", "credentials and options; opens the conversation"
    ),
    (Sender.CLIENT, Phase.OPEN, Verb.CONNECT): Rule("{json}", "options; a second one drops all subscriptions"),
    (Sender.CLIENT, Phase.OPEN, Verb.PUB): Rule("<subject> [reply] <size>", "publish a message"),
    (Sender.CLIENT, Phase.OPEN, Verb.HPUB): Rule(
        "<subject> [reply] <header size> <total size>", "publish with headers"
    ),
    (Sender.CLIENT, Phase.OPEN, Verb.SUB): Rule("<subject> [queue group] <sid>", "subscribe"),
    (Sender.CLIENT, Phase.OPEN, Verb.UNSUB): Rule("<sid> [max]", "unsubscribe, now or after max messages since SUB"),
    (Sender.CLIENT, Phase.OPEN, Verb.PING): Rule("", "answered with PONG"),
    (Sender.CLIENT, Phase.OPEN, Verb.PONG): Rule("", "answers the server's PING"),
    (Sender.CLIENT, Phase.OPEN, Verb.OK): Rule("", "ignored"),
    (Sender.CLIENT, Phase.OPEN, Verb.ERR): Rule("'<text>'", "the server closes the connection"),
    (Sender.CLIENT, Phase.OPEN, Verb.INFO): Rule("{json}", "ignored, unless it is not JSON: then the server closes"),
    (Sender.SERVER, Phase.OPEN, Verb.INFO): Rule("{json}", "something about the server has changed"),
    (Sender.SERVER, Phase.OPEN, Verb.MSG): Rule("<subject> <sid> [reply] <size>", "a message"),
    (Sender.SERVER, Phase.OPEN, Verb.HMSG): Rule(
        "<subject> <sid> [reply] <header size> <total size>", "a message with headers"
    ),
    (Sender.SERVER, Phase.OPEN, Verb.PING): Rule("", "answered with PONG"),
    (Sender.SERVER, Phase.OPEN, Verb.PONG): Rule("", "answers the client's PING"),
    (Sender.SERVER, Phase.OPEN, Verb.OK): Rule("", "the last op was accepted (verbose mode)"),
    (Sender.SERVER, Phase.OPEN, Verb.ERR): Rule("'<text>'", "the last op was refused; some errors end the connection"),
}


_ROUTE_OPS: dict[tuple[Phase, ...], dict[Verb, Rule]] = {
    (Phase.UNDECIDED, Phase.V1, Phase.V2, Phase.LEAF): {
        Verb.INFO: Rule("{json}", "the peer introduces itself or reports a change; with `ip`, another broker (gossip)"),
        Verb.CONNECT: Rule("{json}", "credentials and options of the broker that dialled"),
        Verb.PING: Rule("", "answered with PONG"),
        Verb.PONG: Rule("", "answers our PING"),
        Verb.OK: Rule("", "ignored"),
        Verb.ERR: Rule("'<text>'", "an op was refused; some errors end the route"),
    },
    (Phase.UNDECIDED, Phase.V1): {
        Verb.SUB: Rule("<subject> [queue group] <token>", "a client of the peer subscribes; token: RSID or QRSID"),
        Verb.UNSUB: Rule("<token> [max]", "that subscription ends, now or after max messages"),
        Verb.MSG: Rule("<subject> <token> [reply] <size>", "a message"),
        Verb.PUB: Rule("<subject> [reply] <size>", "a message without a token; real brokers never send it"),
    },
    (Phase.UNDECIDED, Phase.V2): {
        Verb.RS_ADD: Rule(
            "<account> <subject> [queue group weight]", "clients of the peer have interest in the subject"
        ),
        Verb.RS_REMOVE: Rule("<account> <subject> [queue group]", "that interest ends"),
        Verb.RMSG: Rule(
            "<account> <subject> [reply] <size>", "a message; with queue groups `| group...` or `+ reply group...`"
        ),
        Verb.HMSG: Rule(
            "<account> <subject> [reply] <header size> <total size>", "a message with headers; as RMSG else"
        ),
        Verb.LS_ADD: Rule(
            "<origin> <account> <subject> [queue group weight]",
            "leaf nodes of the cluster `origin` have interest there",
        ),
        Verb.LS_REMOVE: Rule("<origin> <account> <subject> [queue group]", "that interest ends"),
        Verb.LMSG: Rule(
            "<origin> <account> <subject> [reply] <header size> <total size>",
            "a message of a leaf node of the cluster `origin`; as HMSG else",
        ),
        Verb.A_ADD: Rule("<account>", "a gateway's: ignored"),
        Verb.A_REMOVE: Rule("<account>", "a gateway's: ignored"),
    },
    (Phase.LEAF,): {
        Verb.LS_ADD: Rule("<subject> [queue group weight]", "clients behind the peer have interest in the subject"),
        Verb.LS_REMOVE: Rule("<subject> [queue group]", "that interest ends"),
        Verb.LMSG: Rule("<subject> [reply] <size>", "a message; with queue groups `| group...` or `+ reply group...`"),
        Verb.HMSG: Rule("<subject> [reply] <header size> <total size>", "a message with headers; as LMSG else"),
    },
}
LAW |= {
    (Sender.PEER, phase, verb): rule
    for phases, ops in _ROUTE_OPS.items()
    for verb, rule in ops.items()
    for phase in phases
}


class Spellings(NamedTuple):
    """The verbs of one sender in one phase, in the form that a parser uses. `prefixes`: every prefix of a spelling, b""
    and the whole included. `letters`: first bytes, in lower case. `longest`: the length of the longest spelling.
    """

    verbs: dict[bytes, Verb]
    prefixes: frozenset[bytes]
    letters: frozenset[int]
    longest: int


def spellings(sender: Sender, phase: Phase) -> Spellings:
    """The spellings that a parser accepts from `sender` in `phase`."""
    verbs = {verb.value: verb for verb in verbs_of(sender, phase)}
    prefixes = frozenset(name[:size] for name in verbs for size in range(len(name) + 1)) | {b""}
    letters = frozenset(name[0] | 0x20 for name in verbs)
    return Spellings(verbs, prefixes, letters, max(map(len, verbs), default=0))


def verbs_of(sender: Sender, phase: Phase) -> frozenset[Verb]:
    """The verbs that `sender` may use in `phase`."""
    return frozenset(verb for row_sender, row_phase, verb in LAW if (row_sender, row_phase) == (sender, phase))
