"""What workers say to each other: messages in the system account, which the routes between them carry.

    $SYS.WORKER.<to>.<account>.API.<rest>        a request of a client about a stream that lives there; it is answered to
                                                 the client, whose inbox is the reply subject
    $SYS.WORKER.<to>.<account>.SEEK.<n>.<rest>   a direct get that <n> more workers may answer
    $SYS.WORKER.<to>.<account>.ASK.<what>        a question of the worker itself
    $SYS.WORKER.<to>.<account>.TELL.<what>       news
    $SYS.WORKER.<to>.-.ANSWER.<number>           the answer to a question: `+` and a document, or `-` and why there is none

<account> is a short hash of its name. Clients of other accounts can neither see these nor send them; users of the system
account could, who may do as much otherwise.

A worker that does not answer is an error that names it, never a shorter answer. One whose connection is gone is noticed at
once, one that hangs after PATIENCE. All workers start at the same time, and the port is open to clients before the routes
between them are there: what is for a worker that was not reached yet waits for it, PATIENCE at most.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Protocol

from headwater.errors import JetStreamError
from headwater.exchange.router import Router
from headwater.exchange.sublist import Subscription
from headwater.jetstream_documents.api_errors import api_error

logger = logging.getLogger(__name__)

PATIENCE = 3.0  # seconds; clients wait for 5
LOOK_AGAIN = 0.01  # seconds, for a worker that starts
MOST_WAITING = 1024  # requests for workers that start
ALL = "-"  # in place of an account: what is about the whole worker

Reply = bytes | Coroutine[object, object, bytes]


class Listener(Protocol):
    """Takes what comes for one account, or for the whole worker."""

    def on_request(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        """A request of another worker's client; `subject` as that client sent it."""
        ...

    def on_seek(self, left: int, subject: bytes, reply: bytes, payload: bytes) -> None:
        """A direct get for which no worker before this one had a stream; `left` more can be asked."""
        ...

    def on_question(self, what: str, payload: bytes) -> Reply:
        """The answer to another worker's question, or to one's own. Raises JetStreamError."""
        ...

    def on_notice(self, what: str, payload: bytes) -> None: ...


class Line:
    """The end at worker `number` of `count`. `router`: that of the system account."""

    def __init__(self, router: Router, number: int, count: int) -> None:
        self.number = number
        self.count = count
        self._router = router
        self._listeners: dict[str, Listener] = {}
        self._waiting: dict[int, tuple[asyncio.Future[bytes], Callable[[bytes], None] | None]] = {}
        # Where another worker of this number has died: what it had asked is still answered, and is answered to this one.
        self._last_number = int.from_bytes(os.urandom(6), "big")
        self._answering: set[asyncio.Task[None]] = set()  # and requests that wait for a worker that starts
        self._reached: set[int] = set()
        self._subscription: Subscription | None = None

    def start(self) -> None:
        """Listen."""
        self._subscription = self._router.subscribe_internal(b"$SYS.WORKER.%d.>" % self.number, self._on_message)

    def stop(self) -> None:
        """Answer nothing any more; questions that wait get no answer."""
        if self._subscription is not None:
            self._router.unsubscribe(self._subscription)
        for task in self._answering:
            task.cancel()
        for waiting, _ in self._waiting.values():
            waiting.cancel()

    def attach(self, account: str, listener: Listener) -> None:
        """Pass what comes for `account`, a token, to the listener."""
        self._listeners[account] = listener

    @property
    def others(self) -> list[int]:
        """The numbers of the other workers."""
        return [number for number in range(1, self.count + 1) if number != self.number]

    # ── sending ──

    def send(self, to: int, account: str, rest: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        """Send a message; False when there is no connection to that worker."""
        subject = b"$SYS.WORKER.%d.%s.%s" % (to, account.encode(), rest)
        if self._router.publish(subject, reply, header_block, payload) <= 0:
            return False
        self._reached.add(to)
        return True

    def send_or(
        self,
        to: int,
        account: str,
        rest: bytes,
        reply: bytes,
        header_block: bytes,
        payload: bytes,
        refuse: Callable[[], None],
    ) -> None:
        """As `send`, for a worker that starts when it is there; `refuse` is called where there is no connection to it."""
        if self.send(to, account, rest, reply, header_block, payload):
            return
        if to in self._reached or len(self._answering) >= MOST_WAITING:
            refuse()
            return

        async def wait() -> None:
            if not (await self._starts(to) and self.send(to, account, rest, reply, header_block, payload)):
                refuse()

        self._keep(asyncio.create_task(wait()))

    async def _starts(self, to: int) -> bool:
        """Wait for a worker that was not reached yet; whether there is a connection to it."""
        loop = asyncio.get_running_loop()
        subject, end = b"$SYS.WORKER.%d.-.ASK.there" % to, loop.time() + PATIENCE
        while not self._router.has_interest(subject):
            if to in self._reached or loop.time() >= end:
                return False
            await asyncio.sleep(LOOK_AGAIN)
        return True

    def _keep(self, task: asyncio.Task[None]) -> None:
        """Hold a task until it is done."""
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    def notify(self, account: str, what: str, payload: bytes) -> None:
        """Send a notice to all other workers; one without a connection misses it."""
        for number in self.others:
            self.send(number, account, f"TELL.{what}".encode(), b"", b"", payload)

    async def ask(
        self, to: int, account: str, what: str, payload: bytes, on_answer: Callable[[bytes], None] | None = None
    ) -> bytes:
        """The answer of a worker, which may be this one. `on_answer` gets it before anything that the worker sent later is
        taken. Raises JetStreamError 10008 when it does not answer, and the error that it answers with."""
        self._last_number += 1
        number = self._last_number
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer, on_answer
        reply, question = b"$SYS.WORKER.%d.-.ANSWER.%d" % (self.number, number), f"ASK.{what}".encode()
        try:
            async with asyncio.timeout(PATIENCE if what != "claim" else 2 * PATIENCE):
                if not self.send(to, account, question, reply, b"", payload) and (
                    what == "there"
                    or not await self._starts(to)
                    or not self.send(to, account, question, reply, b"", payload)
                ):
                    raise api_error("worker_away", worker=to)
                return await answer
        except TimeoutError:
            raise api_error("worker_away", worker=to) from None
        finally:
            del self._waiting[number]

    async def ask_others(self, account: str, what: str, payload: bytes, besides: int = 0) -> list[bytes]:
        """The answers of all other workers but `besides`. Raises JetStreamError 10008 when one does not answer."""
        numbers = [number for number in self.others if number != besides]
        found = await asyncio.gather(
            *(self.ask(number, account, what, payload) for number in numbers), return_exceptions=True
        )
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return [one for one in found if isinstance(one, bytes)]

    async def until_answered(self, count: int) -> None:
        """Wait until `count` other workers answer, whichever they are; the caller bounds the time."""
        answered: set[int] = set()
        while len(answered) < count:
            for number in set(self.others) - answered:
                with suppress(JetStreamError):
                    await self.ask(number, ALL, "there", b"")
                    answered.add(number)
            if len(answered) < count:
                await asyncio.sleep(0.01)

    # ── receiving ──

    def _on_message(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        tokens = subject.split(b".", 5)
        if len(tokens) < 6:
            return
        account, kind, rest = tokens[3].decode("utf-8", "replace"), tokens[4], tokens[5]
        if kind == b"ANSWER":
            self._on_answer(rest, payload)
            return
        listener = self._listeners.get(account)
        if kind == b"ASK":
            self._on_question(listener, rest.decode("utf-8", "replace"), reply, payload)
        elif listener is None:
            logger.warning("worker_message_dropped subject=%r reason='the account has no streams here'", subject)
        elif kind == b"API":
            listener.on_request(b"$JS.API." + rest, reply, header_block, payload)
        elif kind == b"SEEK":
            left, _, numbers = rest.partition(b".")
            listener.on_seek(int(left) if left.isdigit() else 0, b"$JS.API." + numbers, reply, payload)
        elif kind == b"TELL":
            listener.on_notice(rest.decode("utf-8", "replace"), payload)

    def _on_answer(self, number: bytes, payload: bytes) -> None:
        answer, on_answer = self._waiting.get(int(number) if number.isdigit() else 0, (None, None))
        if answer is None or answer.done():
            return
        if payload[:1] == b"+":
            if on_answer is not None:
                on_answer(payload[1:])
            answer.set_result(payload[1:])
        else:
            answer.set_exception(JetStreamError(503, 10008, payload[1:].decode("utf-8", "replace")))

    def _on_question(self, listener: Listener | None, what: str, reply: bytes, payload: bytes) -> None:
        if what == "there":
            self._answer(reply, b"+")
            return
        try:
            if listener is None:
                raise api_error("worker_away", worker=self.number)
            answer = listener.on_question(what, payload)
        except JetStreamError as error:
            self._answer(reply, b"-" + error.description.encode())
            return
        except Exception:  # as in `_answer_later`
            logger.exception("worker_question_failed what=%s", what)
            self._answer(reply, b"-worker %d failed to answer" % self.number)
            return
        if isinstance(answer, bytes):
            self._answer(reply, b"+" + answer)
        else:
            self._keep(asyncio.create_task(self._answer_later(reply, answer)))

    async def _answer_later(self, reply: bytes, work: Coroutine[object, object, bytes]) -> None:
        try:
            self._answer(reply, b"+" + await work)
        except JetStreamError as error:
            self._answer(reply, b"-" + error.description.encode())
        except Exception:  # whatever goes wrong, the other worker gets an answer
            logger.exception("worker_question_failed")
            self._answer(reply, b"-worker %d failed to answer" % self.number)

    def _answer(self, reply: bytes, payload: bytes) -> None:
        self._router.publish(reply, b"", b"", payload)
