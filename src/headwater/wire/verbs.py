"""The law of the client protocol as a table: who may send which verb in which phase, and what it means.

A missing key is the error: what the table does not name is an unknown operation (or, while the server still waits for
CONNECT, an authorization violation). The parsers take their verbs from here, and `docs/protocol.md` is generated from it.
Sources: client protocol document; nats-server 2.15.1 where it is silent (PONG, +OK, -ERR and INFO sent by a client).
"""

from enum import Enum
from typing import NamedTuple


class Sender(Enum):
    """Which end of a client connection speaks."""

    CLIENT = "client"
    SERVER = "server"


class Phase(Enum):
    """How far the conversation is."""

    GREETING = "greeting"  # the server has the first word
    AUTHENTICATING = "authenticating"  # the server requires a CONNECT before anything else
    OPEN = "open"


class Verb(Enum):
    """The spelling on the wire; matched without regard to case."""

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


class Rule(NamedTuple):
    """What a verb means there: its arguments, and what the receiver does."""

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


def verbs_of(sender: Sender, phase: Phase) -> frozenset[Verb]:
    """The verbs that `sender` may use in `phase`."""
    return frozenset(verb for who, when, verb in LAW if (who, when) == (sender, phase))
