"""The real nats-server and ours side by side: the same bytes to both, the same answers expected.

No code of Headwater speaks: `raw_wire` does. An answer is awaited before the next step, so both are asked in the same state.
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from support.headwater_server import start_headwater
from support.jetstream_pair import API, mask
from support.nats_server import start_nats_server
from support.raw_wire import RawLink, dial

PATIENCE = 30.0  # seconds; a healthy server answers in a millisecond
INBOX = "_INBOX.twin"
ADVISORY = "$JS.EVENT.ADVISORY."

_TIMES = re.compile(r"((?:Nats-Time-Stamp|Nats-Schedule-Next): )\d[^\r]+")
_ACK = re.compile(r"(\$JS\.ACK\.[^.\s]+\.[^.\s]+\.\d+\.\d+\.\d+)\.\d+\.")
_PIN = re.compile(r"(Nats-Pin-Id: )\S+")
_MADE_UP = {"id", "timestamp", "server", "pinned_id", "pinned_client_id", "pinned_ts", "ack_time", "start", "end"}
"""Of an advisory or a metric."""
_CLIENT = ("host", "acc", "user", "name", "lang", "ver", "kind", "client_type")
_INVALID_JSON = 10025  # its text quotes the JSON reader


class Publish(NamedTuple):
    """One message, with its headers exactly as they are written here. `silent`: it asks for no answer."""

    subject: str
    headers: dict[str, str] = {}  # noqa: RUF012  (never changed)
    payload: bytes = b""
    silent: bool = False


class Received(NamedTuple):
    """A message as it came."""

    subject: str
    reply: str
    block: str
    data: bytes

    @property
    def shown(self) -> Any:
        """What no two servers share is masked."""
        block = _PIN.sub(r"\1*", _ACK.sub(r"\1.*.", _TIMES.sub(r"\1*", self.block)))
        if self.data.startswith(b"{") and not block and not self.reply:
            return _document(json.loads(self.data))
        return (block, _ACK.sub(r"\1.*.", self.reply), self.data)


class Twin:
    """A link to one server. `listen` adds a subject; what comes there is read by `received`."""

    def __init__(self, link: RawLink, name: str) -> None:
        self.link = link
        self.name = name
        self._requests = 0
        self._sids = 1
        self.inboxes: dict[str, str] = {}
        self._waiting: list[tuple[str, Received]] = []
        link.patience(PATIENCE)
        link.send(f"SUB {INBOX}.> 1\r\n".encode())

    def listen(self, subject: str) -> str:
        """Returns the sid."""
        self._sids += 1
        self.link.send(f"SUB {subject} {self._sids}\r\n".encode())
        self.settle()
        return str(self._sids)

    def send(self, step: Publish, reply: str = "") -> None:
        block = "".join(f"{name}: {value}\r\n" for name, value in step.headers.items())
        block = f"NATS/1.0\r\n{block}\r\n" if block else ""
        size = len(block.encode()) + len(step.payload)
        sizes = f"{len(block.encode())} {size}" if block else str(size)
        verb = "HPUB" if block else "PUB"
        self.link.send(f"{verb} {step.subject} {reply} {sizes}\r\n{block}".encode() + step.payload + b"\r\n")

    def ask(self, step: Publish) -> Received:
        """The answer; with `silent` none is awaited, and what came is empty."""
        if step.silent:
            self.send(step)
            self.settle()
            return Received("", "", "", b"")
        inbox = self.new_inbox()
        self.send(step, inbox)
        try:
            return self.next_on(inbox)
        except TimeoutError as error:
            raise AssertionError(f"no answer to {step} from {self.name}") from error

    def new_inbox(self) -> str:
        self._requests += 1
        return f"{INBOX}.{self._requests}"

    def next_on(self, subject: str) -> Received:
        """The next message on a subject."""
        while True:
            for position, (_, message) in enumerate(self._waiting):
                if message.subject == subject:
                    del self._waiting[position]
                    return message
            self._receive()

    def next_of(self, sid: str) -> Received:
        """The next message of a subscription."""
        while True:
            for position, (of, message) in enumerate(self._waiting):
                if of == sid:
                    del self._waiting[position]
                    return message
            self._receive()

    def taken(self, prefix: str) -> list[Received]:
        """What has come below the prefix so far."""
        self.settle()
        found = [message for _, message in self._waiting if message.subject.startswith(prefix)]
        self._waiting = [one for one in self._waiting if not one[1].subject.startswith(prefix)]
        return found

    def settle(self) -> None:
        """Everything that the server has sent so far is read."""
        self.link.send(b"PING\r\n")
        while self._receive() != b"PONG":
            pass

    def _receive(self) -> bytes:
        line = self.link.receive_line()
        words = line.decode().split()
        if words[0] == "PING":
            self.link.send(b"PONG\r\n")
        if words[0] not in ("MSG", "HMSG"):
            assert words[0] != "-ERR", line
            return words[0].encode()
        total = int(words[-1])
        head = int(words[-2]) if words[0] == "HMSG" else 0
        between = words[3 : -2 if head else -1]
        body = self.link.receive(total + 2)
        received = Received(words[1], between[0] if between else "", body[:head].decode(), body[head:-2])
        self._waiting.append((words[2], received))
        return b""


class Twins:
    """`real` and `ours`."""

    def __init__(self, real: Twin, ours: Twin) -> None:
        self.real = real
        self.ours = ours

    @property
    def both(self) -> tuple[Twin, Twin]:
        return self.real, self.ours

    def publish(self, *steps: Publish) -> list[Any]:
        """Both must answer each step alike; returns our answers."""
        answers = []
        for step in steps:
            real, ours = (twin.ask(step).shown for twin in self.both)
            assert ours == real, f"{step}: ours {ours}, the real one {real}"
            answers.append(ours)
        return answers

    def api(self, verb: str, body: object = None) -> Any:
        """One request to the API; returns our answer, masked."""
        payload = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self.publish(Publish(API + verb, {}, payload))[0]

    def stream(self, name: str, **config: object) -> Any:
        """Made anew, on `name.>` unless the configuration says otherwise."""
        for twin in self.both:
            twin.ask(Publish(f"{API}STREAM.DELETE.{name}"))
        return self.api(f"STREAM.CREATE.{name}", {"name": name, "subjects": [f"{name.lower()}.>"], **config})

    def stored(self, name: str) -> list[Any]:
        """Both streams must hold the same messages, header blocks to the byte; returns ours."""
        info = Publish(f"{API}STREAM.INFO.{name}")
        real, ours = (twin.ask(info).shown["state"] for twin in self.both)
        sequences = range(max(real["first_seq"], 1), real["last_seq"] + 1)
        found = [self.api(f"STREAM.MSG.GET.{name}", {"seq": sequence}) for sequence in sequences]
        assert ours == real, f"{name}: ours {ours}, the real one {real}"
        return found

    def pull(self, consumer: str, inbox: str, **wanted: object) -> None:
        """Ask both for messages, answered at `inbox`, whatever their subjects."""
        step = Publish(f"{API}CONSUMER.MSG.NEXT.{consumer}", {}, json.dumps(wanted).encode())
        for twin in self.both:
            if inbox not in twin.inboxes:
                twin.inboxes[inbox] = twin.listen(f"pulled.{inbox}")
            twin.send(step, f"pulled.{inbox}")

    def pulled(self, inbox: str) -> Any:
        """The next answer to such a request; returns ours."""
        real, ours = (twin.next_of(twin.inboxes[inbox]).shown for twin in self.both)
        assert ours == real, f"{inbox}: ours {ours}, the real one {real}"
        return ours

    def listen(self, subject: str) -> None:
        for twin in self.both:
            twin.listen(subject)

    def next(self, subject: str) -> Any:
        """The next message on a subject; returns ours."""
        real, ours = (twin.next_on(subject).shown for twin in self.both)
        assert ours == real, f"{subject}: ours {ours}, the real one {real}"
        return ours

    def taken(self, prefix: str) -> list[Any]:
        """What has come below a prefix so far, with its subjects; returns ours."""
        real, ours = ([(one.subject, one.shown) for one in twin.taken(prefix)] for twin in self.both)
        assert ours == real, f"{prefix}: ours {ours}, the real one {real}"
        return ours


class Servers(NamedTuple):
    """Both servers, running."""

    real_port: int
    our_port: int

    @contextmanager
    def twins(self) -> Iterator[Twins]:
        """A link to each."""
        with dial(self.real_port, no_responders=True) as real, dial(self.our_port, no_responders=True) as ours:
            yield Twins(Twin(real, "the real one"), Twin(ours, "ours"))

    @classmethod
    @contextmanager
    def started(cls, directory: Path, config: str = "", jetstream: str = "") -> Iterator[Self]:
        """`config`: of both, without JetStream's part; `jetstream`: more of that."""
        with ExitStack() as stack:
            texts = {
                name: f'{config}\njetstream {{ store_dir: "{directory / name / "js"}"\n{jetstream} }}\n'
                for name in ("real", "ours")
            }
            paths = {name: directory / f"{name}.conf" for name in texts}
            for name, text in texts.items():
                paths[name].write_text(text)
            real = stack.enter_context(start_nats_server(directory / "real", "-c", str(paths["real"]), jetstream=False))
            ours = stack.enter_context(start_headwater(directory / "ours", "-c", str(paths["ours"])))
            yield cls(real.port, ours.port)


def _document(answer: dict[str, Any]) -> Any:
    if str(answer.get("type", "")).startswith(("io.nats.jetstream.advisory.", "io.nats.jetstream.metric.")):
        return _advisory(answer)
    for group in answer.get("priority_groups") or []:
        if group.get("pinned_client_id"):
            group.update(pinned_client_id="*", pinned_ts="*")
    error = answer.get("error")
    if isinstance(error, dict) and error.get("err_code") == _INVALID_JSON:
        error["description"] = "*"
    return mask(answer, {})


def _advisory(document: dict[str, Any]) -> Any:
    shown: dict[str, Any] = {key: "*" if key in _MADE_UP else value for key, value in document.items()}
    if "client" in shown:
        assert {"start", "id", "server"} <= shown["client"].keys()
        shown["client"] = {key: shown["client"].get(key) for key in _CLIENT}
    if "response" in shown:
        shown["response"] = _document(json.loads(shown["response"]))
    return mask(shown, {})
