"""libnats (nats.c) under measurement: a C library as the peer of `client_load.py`, driven at the speed of C.

    libnats_load.main() with CASE PORT MESSAGES in sys.argv

prints "ready" when its subscription is established, then the outcome. It measures what `client_load.py` measures, with the
same stopwatch: the CPU time of this process, including all threads, from the first message to the last.

Driving libnats from Python would add Python's cost. So this module is only ever compiled (`bench_client.py` does it, in
Cython's pure-Python mode; importing it interpreted fails), and between the first message and the last it holds no GIL and
touches no object: every loop over messages is a `nogil` function, and so is the callback, which threads of libnats call.
The GIL is taken to start the stopwatch at the first message, to start and join the threads of requests, and to end the
process on an error.
"""

import json
import os
import signal
import sys
import threading
from dataclasses import asdict

import cython
from client_load import PAYLOAD, SUBJECT, Outcome, Stopwatch, print_ready
from cython.cimports.libnats import (
    NATS_OK,
    Connection,
    Message,
    Subscription,
    nats_Sleep,
    natsConnection_ConnectTo,
    natsConnection_Destroy,
    natsConnection_FlushTimeout,
    natsConnection_Publish,
    natsConnection_Request,
    natsConnection_Subscribe,
    natsConnection_SubscribeSync,
    natsMsg_Destroy,
    natsMsg_GetDataLength,
    natsStatus,
    natsStatus_GetText,
    natsSubscription_Destroy,
    natsSubscription_NextMsg,
    natsSubscription_SetPendingLimits,
)

TIMEOUT: cython.int = 60_000  # milliseconds
OUTSTANDING = {"request1": 1, "request64": 64}
WARM = 2  # requests before the measured ones

_subject: bytes = SUBJECT.encode()
_payload: bytes = PAYLOAD
subject: cython.p_const_char = _subject
payload: cython.p_const_char = _payload
size: cython.int = len(_payload)
connection: Connection = cython.NULL
wanted: cython.long = 0
seen: cython.long = 0
watch: Stopwatch | None = None


def check(status: natsStatus, what: cython.p_const_char) -> None:
    if status != NATS_OK:
        fail(status, what)


def fail(status: natsStatus, what: cython.p_const_char) -> None:
    """Print the error and end the process, from any thread."""
    with cython.gil:
        text: bytes = natsStatus_GetText(status)
        doing: bytes = what
        print(f"{doing.decode()}: {text.decode()}", file=sys.stderr, flush=True)
        os._exit(1)


def flush() -> None:
    check(natsConnection_FlushTimeout(connection, TIMEOUT), b"flush")


def start_watch() -> None:
    global watch
    with cython.gil:
        watch = Stopwatch()


def publish_all(messages: cython.long) -> None:
    for _ in range(messages):
        check(natsConnection_Publish(connection, subject, payload, size), b"publish")
    flush()


def take(source: Connection, subscription: Subscription, message: Message, closure: cython.p_void) -> None:
    """The callback. `seen` is written by one thread of libnats only."""
    global seen
    if seen == 0:
        start_watch()
    seen += natsMsg_GetDataLength(message) == size
    natsMsg_Destroy(message)


def receive(subscription: Subscription, messages: cython.long) -> None:
    message: Message = cython.NULL
    number: cython.long
    for number in range(messages):
        check(natsSubscription_NextMsg(cython.address(message), subscription, TIMEOUT), b"next")
        if number == 0:
            start_watch()
        natsMsg_Destroy(message)


def ask(messages: cython.long) -> None:
    answer: Message = cython.NULL
    for _ in range(messages):
        check(natsConnection_Request(cython.address(answer), connection, subject, payload, size, TIMEOUT), b"request")
        natsMsg_Destroy(answer)


# ── cases ──


def publish(messages: int) -> Outcome:
    count: cython.long = messages
    running = Stopwatch()
    with cython.nogil:
        publish_all(count)
    return running.read(messages)


def callback(messages: int) -> Outcome:
    """Waits by polling every millisecond, which costs a thousandth of the measured time, and no lock per message."""
    global wanted
    subscription: Subscription = cython.NULL
    wanted = messages
    check(natsConnection_Subscribe(cython.address(subscription), connection, subject, take, cython.NULL), b"subscribe")
    _stand(subscription)
    with cython.nogil:
        while seen < wanted:
            nats_Sleep(1)
    return _ended(subscription, messages)


def next_message(messages: int) -> Outcome:
    subscription: Subscription = cython.NULL
    count: cython.long = messages
    check(natsConnection_SubscribeSync(cython.address(subscription), connection, subject), b"subscribe")
    _stand(subscription)
    with cython.nogil:
        receive(subscription, count)
    return _ended(subscription, messages)


@cython.cfunc
def _stand(subscription: Subscription) -> None:
    """Wait until the server has a subscription without pending limits."""
    check(natsSubscription_SetPendingLimits(subscription, -1, -1), b"limits")
    flush()
    print_ready()


@cython.cfunc
def _ended(subscription: Subscription, messages: cython.long) -> Outcome:
    assert watch is not None
    outcome = watch.read(messages)
    natsSubscription_Destroy(subscription)
    return outcome


def request(messages: int, workers: int) -> Outcome:
    """libnats blocks a thread while it waits for an answer: 64 outstanding requests are 64 threads."""
    each = messages // workers
    _ask_without_gil(WARM)
    threads = [threading.Thread(target=_ask_without_gil, args=(each,)) for _ in range(workers)]
    running = Stopwatch()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return running.read(each * workers)


def _ask_without_gil(messages: int) -> None:
    count: cython.long = messages
    with cython.nogil:
        ask(count)


def main() -> None:
    case, port, messages = sys.argv[1], sys.argv[2], int(sys.argv[3])
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler would wait for a loop that has no GIL
    url: bytes = f"nats://127.0.0.1:{port}".encode()
    check(natsConnection_ConnectTo(cython.address(connection), url), b"connect")
    if case in OUTSTANDING:
        outcome = request(messages, OUTSTANDING[case])
    else:
        outcome = {"publish": publish, "callback": callback, "next": next_message}[case](messages)
    print(json.dumps(asdict(outcome)))
    natsConnection_Destroy(connection)
