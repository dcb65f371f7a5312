"""Holds a conversation (`jetstream_requests.py`) with a server, and writes down what was answered, masked.

One step after the other: an answer is awaited before the next step is sent, so that two servers are asked in the same
state. Silence is an answer too, and costs SILENCE. No code of Headwater is used: `raw_wire` speaks.
"""

import json
import re
from typing import Any, NamedTuple

from support.jetstream_pair import API, mask
from support.jetstream_requests import Step
from support.raw_wire import RawLink, dial

SILENCE = 2.0  # seconds; a healthy server answers in one millisecond
EXPECTED_SILENCE = 0.3  # where one of the two says nothing
MOST_MESSAGES = 64
INBOX = "_INBOX.talk"

_TIMES = re.compile(r"(Nats-Time-Stamp: )[^\r]+")
_ACK = re.compile(r"(\$JS\.ACK\.[^.\s]+\.[^.\s]+\.\d+\.\d+\.\d+)\.\d+\.")
_BAD_REQUEST = re.compile(r"(NATS/1.0 400 Bad Request - )[^\r]+")
_INVALID_JSON = 10025  # its text quotes the JSON reader


class Heard(NamedTuple):
    """A message as it came: `reply` is where its ack goes, "" for an answer."""

    subject: str
    reply: str
    block: str
    data: str

    @property
    def is_status(self) -> bool:
        return self.block.startswith("NATS/1.0 ")


def hold(port: int, steps: list[Step]) -> list[Any]:
    """What the server says to each step."""
    with dial(port, no_responders=True) as link:
        link.say(f"SUB {INBOX}.* 1\r\n".encode())
        talk = _Talk(link)
        return [talk.take(step) for step in steps]


def is_tolerated(step: Step, real: Any, ours: Any) -> bool:
    """What nats-server leaves unanswered, and we do not (docs/jetstream.md): a reset of a consumer that is not there, and
    the end of a pull that does not wait when max_ack_pending stopped it."""
    if ".CONSUMER.RESET." in step.subject:
        return bool(real == [])
    return step.kind == "pull" and bool(ours) and ours[:-1] == real and "404 No Messages" in ours[-1][1]


class _Talk:
    def __init__(self, link: RawLink) -> None:
        self._link = link
        self._number = 0
        self._acks: dict[str, list[str]] = {}

    def take(self, step: Step) -> Any:
        subject = step.subject
        if step.kind == "ack":
            known = self._acks.get(subject, [])
            if step.which >= len(known):
                return None
            subject = known[step.which]
        self._number += 1
        reply = f"{INBOX}.{self._number}"
        size, block = len(step.block) + len(step.payload), step.block
        verb, sizes = ("HPUB", f"{len(block)} {size}") if block else ("PUB", str(size))
        self._link.say(f"{verb} {subject} {reply} {sizes}\r\n".encode() + block + step.payload + b"\r\n")
        silent = step.kind == "pull" or ".CONSUMER.RESET." in subject
        self._link.patience(EXPECTED_SILENCE if silent else SILENCE)
        heard: list[Heard] = []
        last = _asked_for(step)
        while len(heard) < last:
            message = self._next(reply)
            if message is None:
                break
            heard.append(message)
            if (message.is_status and not message.block.startswith("NATS/1.0 100")) or _is_last(step, message):
                break
        if step.kind == "pull":
            where = step.subject.removeprefix(f"{API}CONSUMER.MSG.NEXT.")
            self._acks.setdefault(where, []).extend(m.reply for m in heard if m.reply)
        return [_written(message) for message in heard]

    def _next(self, reply: str) -> Heard | None:
        """The next message for `reply`; what comes late for an earlier step is passed over."""
        while (message := self._receive()) is not None:
            if message.reply or message.subject == reply:
                return message
        return None

    def _receive(self) -> Heard | None:
        try:
            line = self._link.hear_line()
        except TimeoutError:
            return None
        words = line.decode().split()
        if words[0] not in ("MSG", "HMSG"):
            if words[0] == "PING":
                self._link.say(b"PONG\r\n")
            else:
                assert words[0] != "-ERR", line
            return self._receive()
        total = int(words[-1])
        head = int(words[-2]) if words[0] == "HMSG" else 0
        between = words[3 : -2 if head else -1]
        body = self._link.hear(total + 2)
        return Heard(
            words[1], between[0] if between else "", body[:head].decode(), body[head:-2].decode(errors="replace")
        )


def _asked_for(step: Step) -> int:
    """How many messages the step may bring, statuses aside."""
    if step.kind == "direct":
        return MOST_MESSAGES
    if step.kind != "pull":
        return 1
    batch = json.loads(step.payload)["batch"]
    return batch if type(batch) is int and 0 < batch < MOST_MESSAGES else 1


def _is_last(step: Step, message: Heard) -> bool:
    return step.kind == "direct" and "Nats-Num-Pending" not in message.block


def _written(message: Heard) -> Any:
    """An answer: a document masked, or a message."""
    if message.data.startswith("{") and not message.reply:
        return _document(json.loads(message.data))
    block = _BAD_REQUEST.sub(r"\1*", _TIMES.sub(r"\1*", message.block))
    return [_ACK.sub(r"\1.*.", message.reply), _ACK.sub(r"\1.*.", block), message.data]


def _document(answer: dict[str, Any]) -> Any:
    error = answer.get("error")
    if isinstance(error, dict) and error.get("err_code") == _INVALID_JSON:
        error["description"] = "*"
    for info in [answer, *(answer.get("consumers") or [])]:
        if isinstance(info, dict) and "pause_remaining" in info:
            info["pause_remaining"] = "*"
    if error:
        answer.pop("reset_seq", None)
    state = answer.get("state")
    if isinstance(state, dict) and state.get("deleted") == [0]:  # nats-server, of a stream that never held a message
        del state["deleted"], state["num_deleted"]
    made_up = answer.get("name")
    names = {made_up: "*"} if isinstance(made_up, str) and re.fullmatch("[A-Za-z0-9]{8}", made_up) else {}
    return mask(answer, names)
