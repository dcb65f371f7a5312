"""Holds a conversation (`jetstream_requests.py`) with a server, and writes down what was answered, masked.

One step after the other: an answer is awaited before the next step is sent, so that two servers are asked in the same
state. Silence is an answer too, and costs SILENCE. No code of Headwater is used: `raw_wire` speaks.
"""

import json
import re
from base64 import b64decode
from time import monotonic
from typing import Any, NamedTuple

from support.jetstream_copy_talk import MOMENT
from support.jetstream_pair import API, mask
from support.jetstream_requests import Step
from support.jetstream_themes import PIN
from support.raw_wire import RawLink, dial

ANSWER = 30.0  # seconds, to a request that is always answered
SILENCE = 2.0  # seconds; a healthy server answers in one millisecond
EXPECTED_SILENCE = 0.3  # where one of the two says nothing
MOST_MESSAGES = 64
INBOX = "_INBOX.talk"
FAST = "_INBOX.fast"
DUE = 2.0  # seconds that a schedule may take whose turn is past

_TIMES = re.compile(r"(Nats-Time-Stamp: |Nats-Pin-Id: |Nats-Schedule-Next: (?=\d))[^\r]+")
_IDENTITY = re.compile(r"(Nats-Stream-Source: [^\r]*) [0-9A-Za-z]{8}(?=\r)")
_CHANGES = (
    "active",
    "lag",
    "error",
    "filter_subject",
    "subject_transforms",
    "seq",
)  # of a mirror or source that has just begun
_PIN = re.compile(r"Nats-Pin-Id: (\S+)")
_ACK = re.compile(r"(\$JS\.ACK\.[^.\s]+\.[^.\s]+\.\d+\.\d+\.\d+)\.\d+\.")
_PENDING = re.compile(r"(\$JS\.ACK\.[^.\s]+\.[^.\s]+\.\d+\.\d+\.\d+\.\*)\.\d+")
_MISCOUNTED = {"num_pending", "num_ack_pending", "ack_floor"}
_BAD_REQUEST = re.compile(r"(NATS/1.0 400 Bad Request - )[^\r]+")
_INVALID_JSON = 10025  # its text quotes the JSON reader


class Received(NamedTuple):
    """A message as it came: `reply` is where its ack goes, "" for an answer."""

    sid: str
    subject: str
    reply: str
    block: str
    data: str

    @property
    def is_status(self) -> bool:
        return self.block.startswith("NATS/1.0 ")


def hold(port: int, steps: list[Step], quiet: float) -> list[Any]:
    """What the server says to each step. `quiet`: after so many seconds of silence nothing more comes of a message of a
    fast batch, or to a push consumer."""
    with dial(port, no_responders=True) as link:
        talk = Talk(link, quiet)
        return [talk.take(step) for step in steps]


def without_pending(output: Any) -> Any:
    """What was sent, without the numbers that nats-server miscounts once a filter has been changed: what is pending, and
    which messages that are gone still wait for an ack."""
    if isinstance(output, dict):
        return {key: without_pending(part) for key, part in output.items() if key not in _MISCOUNTED}
    if isinstance(output, list):
        return [without_pending(part) for part in output]
    return _PENDING.sub(r"\1.*", output) if isinstance(output, str) else output


def is_tolerated(step: Step, real: Any, ours: Any) -> bool:
    """What nats-server leaves unanswered, and we do not (docs/jetstream.md): a reset of a consumer that is not there, and
    the end of a pull that does not wait when max_ack_pending stopped it."""
    if ".CONSUMER.RESET." in step.subject:
        return real in ([], [[]])
    return step.kind == "pull" and bool(ours) and ours[:-1] == real and "404 No Messages" in ours[-1][1]


class Talk:
    """The state of one conversation. Sid 1 receives answers, 2 those of fast batches, the others what is pushed."""

    def __init__(self, link: RawLink, quiet: float) -> None:
        self._link = link
        link.send(f"SUB {INBOX}.* 1\r\nSUB {FAST}.> 2\r\n".encode())
        self._quiet = quiet
        self._number = 0
        self._acks: dict[str, list[str]] = {}
        self._listening: dict[str, int] = {}
        self._sids = 2
        self._pushes: list[Received] = []
        self._pin = ""
        self.moments: list[str] = []

    def take(self, step: Step) -> Any:
        if step.kind in ("listen", "leave"):
            self._listen(step)
            answer: Any = None
        elif step.kind == "ack":
            known = self._acks.get(step.subject, [])
            answer = self._ask(step, known[step.which]) if step.which < len(known) else None
        elif step.kind == "fast":
            answer = self._continue_batch(step)
        else:
            answer = self._ask(step, step.subject)
        if step.kind == "due" and answer and isinstance(answer[0], dict) and "error" not in answer[0]:
            answer = self._wait_until_due(step.subject, answer)
        return [answer, *self._pushed()] if self._sids > 2 else answer

    def _publish(self, step: Step, subject: str, reply: str) -> None:
        block = step.block
        payload = step.payload.replace(PIN.encode(), self._pin.encode()) if self._pin else step.payload
        if self.moments:
            payload = payload.replace(MOMENT.encode(), self.moments[-2:][0].encode())
        size = len(block) + len(payload)
        verb, sizes = ("HPUB", f"{len(block)} {size}") if block else ("PUB", str(size))
        self._link.send(f"{verb} {subject} {reply} {sizes}\r\n".encode() + block + payload + b"\r\n")

    def _ask(self, step: Step, subject: str) -> Any:
        self._number += 1
        reply = f"{INBOX}.{self._number}"
        self._publish(step, subject, reply)
        silent = step.kind == "pull" or ".CONSUMER.RESET." in subject
        self._link.patience(EXPECTED_SILENCE if silent else SILENCE)
        received: list[Received] = []
        last = _wanted_count(step)
        while len(received) < last:
            message = self._next(reply)
            if message is None:
                break
            received.append(message)
            if (message.is_status and not message.block.startswith("NATS/1.0 100")) or _is_last(step, message):
                break
        if step.kind == "pull":
            self._remember(received)
        return [_written(message) for message in received]

    def request(self, subject: str, document: Any) -> Any:
        """The answer to a request, as it is."""
        self._number += 1
        reply = f"{INBOX}.{self._number}"
        payload = b"" if document is None else json.dumps(document).encode()
        self._publish(Step("api", subject, payload), subject, reply)
        self._link.patience(ANSWER)
        message = self._next(reply)
        assert message is not None, subject
        return json.loads(message.data)

    def _remember(self, deliveries: list[Received]) -> None:
        for message in deliveries:
            if message.reply:
                stream, consumer = message.reply.split(".")[2:4]
                self._acks.setdefault(f"{stream}.{consumer}", []).append(message.reply)
                if found := _PIN.search(message.block):
                    self._pin = found[1]

    def _continue_batch(self, step: Step) -> Any:
        self._publish(step, step.subject, f"{FAST}.{step.reply}.$FI")
        self._link.patience(self._quiet)
        received = []
        while (message := self._receive()) is not None:
            if message.sid == "2":
                received.append([message.subject, _written(message)])
            elif message.sid != "1":
                self._pushes.append(message)
        return received

    def _wait_until_due(self, subject: str, answer: Any) -> Any:
        """With the last message of the subject of the schedule, once that is not the schedule any more."""
        stream = answer[0]["stream"]
        deadline = monotonic() + DUE
        get = Step("api", f"{API}STREAM.MSG.GET.{stream}", json.dumps({"last_by_subj": subject}).encode())
        while True:
            found = self._ask(get, get.subject)
            message = found[0].get("message") if found else None
            if not message or message.get("seq") != answer[0]["seq"] or monotonic() > deadline:
                return [answer, found]

    def _listen(self, step: Step) -> None:
        if step.kind == "leave" or step.subject in self._listening:
            if (sid := self._listening.pop(step.subject, 0)) > 0:
                self._link.send(f"UNSUB {sid}\r\n".encode())
        if step.kind == "listen":
            self._sids += 1
            self._listening[step.subject] = self._sids
            self._link.send(f"SUB {step.subject} {step.reply} {self._sids}\r\n".encode())

    def _pushed(self) -> Any:
        """What came to the deliver subjects, consumer by consumer; heartbeats are left out."""
        self._link.patience(self._quiet)
        while (message := self._receive()) is not None:
            if message.sid not in ("1", "2"):
                self._pushes.append(message)
        came, self._pushes = [message for message in self._pushes if not message.is_status], []
        self._remember(came)
        return sorted(([message.subject, *_written(message)] for message in came), key=lambda shown: _place(shown[1]))

    def _next(self, reply: str) -> Received | None:
        """The next message for `reply`; what comes late for an earlier step is passed over."""
        while (message := self._receive()) is not None:
            if message.sid not in ("1", "2"):
                self._pushes.append(message)
            elif message.reply or message.subject == reply:
                return message
        return None

    def _receive(self) -> Received | None:
        try:
            line = self._link.receive_line()
        except TimeoutError:
            return None
        words = line.decode().split()
        if words[0] not in ("MSG", "HMSG"):
            if words[0] == "PING":
                self._link.send(b"PONG\r\n")
            else:
                assert words[0] != "-ERR", line
            return self._receive()
        total = int(words[-1])
        head = int(words[-2]) if words[0] == "HMSG" else 0
        between = words[3 : -2 if head else -1]
        body = self._link.receive(total + 2)
        return Received(
            words[2],
            words[1],
            between[0] if between else "",
            body[:head].decode(),
            body[head:-2].decode(errors="replace"),
        )


def _place(reply: str) -> tuple[str, ...]:
    """Sorts the deliveries of each consumer in their order."""
    words = reply.split(".")
    return (*words[2:4], *(f"{int(word):09}" for word in words[4:7] if word.isdigit()))


def _wanted_count(step: Step) -> int:
    """How many messages the step may bring, statuses aside."""
    if step.kind == "direct":
        return MOST_MESSAGES
    if step.kind != "pull":
        return 1
    batch = json.loads(step.payload)["batch"]
    return batch if type(batch) is int and 0 < batch < MOST_MESSAGES else 1


def _is_last(step: Step, message: Received) -> bool:
    return step.kind == "direct" and "Nats-Num-Pending" not in message.block


def _written(message: Received) -> Any:
    """An answer: a document masked, or a message."""
    if message.data.startswith("{") and not message.reply:
        return _document(json.loads(message.data))
    block = _IDENTITY.sub(r"\1 *", _BAD_REQUEST.sub(r"\1*", _TIMES.sub(r"\1*", message.block)))
    return [_ACK.sub(r"\1.*.", message.reply), _ACK.sub(r"\1.*.", block), message.data]


def _document(answer: dict[str, Any]) -> Any:
    error = answer.get("error")
    if isinstance(error, dict) and error.get("err_code") == _INVALID_JSON:
        error["description"] = "*"
    for info in [answer, *(answer.get("consumers") or [])]:
        if isinstance(info, dict) and "pause_remaining" in info:
            info["pause_remaining"] = "*"
        for group in info.get("priority_groups") or [] if isinstance(info, dict) else []:
            group.update({key: "*" for key in ("pinned_client_id", "pinned_ts") if "pinned_client_id" in group})
    if isinstance(message := answer.get("message"), dict) and "hdrs" in message:
        message["hdrs"] = _IDENTITY.sub(r"\1 *", b64decode(message["hdrs"]).decode())
    for copied in (answer.get("mirror"), *(answer.get("sources") or ())):
        if isinstance(copied, dict):
            for name in _CHANGES:
                copied.pop(name, None)
    if isinstance(answer.get("sources"), list):
        answer["sources"].sort(key=json.dumps)  # in nats-server in any order
    if str(answer.get("type")).endswith("consumer_create_response"):
        answer.pop("push_bound", None)  # nats-server looks for subscribers of a new deliver subject behind its answer
    if error:
        answer.pop("reset_seq", None)
    state = answer.get("state")
    if isinstance(state, dict) and state.get("deleted") == [0]:  # nats-server, of a stream that never held a message
        del state["deleted"], state["num_deleted"]
    made_up = answer.get("name")
    names = {made_up: "*"} if isinstance(made_up, str) and re.fullmatch("[A-Za-z0-9]{8}", made_up) else {}
    return mask(answer, names)
