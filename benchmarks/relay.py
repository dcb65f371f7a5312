# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False, cdivision=True
"""The floor under the rows of `./hw bench broker`, and of `./hw bench growth` without streams: a relay that does only what
no broker can omit.

It reads up to 256 KiB at a time, finds each control line by its newline and its length by the last number, looks the
subject up in one hash of literal subjects, appends the rest of the message to each subscriber's own prefix, and writes once
to each subscriber when a round of reads is over. Wildcards are matched once per subject, whose entry then lists its
subscribers.

It omits everything else of a broker: log-in, permissions, accounts, queue groups, limits, UNSUB, TLS, and tolerance of bad
input; subjects have at most 47 bytes, a sid at most 23 bytes. The difference between a broker's cost and the relay's is the
cost of those. What it costs more with many of something is the kernel's and the memory's: nothing is read ahead.

It is only ever compiled (Cython's pure-Python mode; `contestants.start_relay` runs it): no object is touched between two
messages.
"""

import socket
import sys

import cython
from cython.cimports.relay_system import (
    EPOLL_CTL_ADD,
    EPOLL_CTL_DEL,
    EPOLL_CTL_MOD,
    EPOLLIN,
    EPOLLOUT,
    MSG_DONTWAIT,
    MSG_NOSIGNAL,
    Event,
    Events,
    Interest,
    Interests,
    Known,
    Knowns,
    Link,
    Links,
    calloc,
    epoll_create1,
    epoll_ctl,
    epoll_wait,
    memchr,
    memcmp,
    memcpy,
    memmove,
    memset,
    realloc,
    recv,
    send,
    uint64_t,
)

from headwater.net import pacing

MOST_LINKS = 1 << 14  # descriptors
MOST_INTERESTS = 1 << 17
READ: cython.Py_ssize_t = 256 << 10
SLOTS: cython.Py_ssize_t = 1 << 18  # of each hash
NEAR: cython.int = 4  # slots that a subject may be in; there is a newer one where all are taken
PRIME: uint64_t = 1099511628211  # of FNV-1a
TARGETS: cython.int = 12  # subscribers that a slot has room for; of more there is an array
FIRST_ROOM: cython.Py_ssize_t = 4096  # bytes of a subscriber's output, before it needs more
SUBJECT: cython.int = 48
EVENTS: cython.int = 256
HIGH: cython.Py_ssize_t = 8 << 20  # bytes that a subscriber may lag behind; beyond that the relay waits for it
INFO = (
    b'INFO {"server_id":"RELAY","server_name":"relay","version":"2.10.0","proto":1,"headers":true,"max_payload":1048576}'
    b"\r\n"
)

links: Links = cython.NULL
interests: Interests = cython.NULL
table: Knowns = cython.NULL
events: Events = cython.NULL
arrived: cython.p_char = cython.NULL
poll: cython.int = 0
interested: cython.int = 0
literals: cython.p_int = cython.NULL  # a hash of subjects without wildcards: number of the last interest, plus 1
wild: cython.p_int = cython.NULL  # the numbers of the other interests
wild_count: cython.int = 0
generation: cython.Py_ssize_t = 1
dirty: cython.p_int = cython.NULL
dirty_count: cython.int = 0


def watch(descriptor: cython.int, operation: cython.int, wanted: cython.int) -> cython.int:
    event = cython.declare(Event)
    event.events = wanted
    event.data.fd = descriptor
    if epoll_ctl(poll, operation, descriptor, cython.address(event)) < 0:
        raise OSError(f"epoll_ctl of {descriptor}")
    return 0


# ── in ──


def read_from(descriptor: cython.int) -> cython.int:
    link: Links = cython.address(links[descriptor])
    kept: cython.Py_ssize_t = link.kept
    if kept:
        memcpy(arrived, link.rest, kept)
    size: cython.Py_ssize_t = recv(descriptor, arrived + kept, READ, MSG_DONTWAIT)
    if size <= 0:
        return drop(descriptor) if size == 0 else 0
    size += kept
    used: cython.Py_ssize_t = parse(descriptor, arrived, size)
    link.kept = size - used
    if link.kept > READ:
        raise OSError("a message that is larger than a read")
    if link.kept:
        if link.rest == cython.NULL:
            link.rest = cython.cast(cython.p_char, calloc(1, READ))
        memmove(link.rest, arrived + used, link.kept)
    return 0


def parse(descriptor: cython.int, data: cython.p_const_char, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Returns the number of bytes in complete operations."""
    at: cython.Py_ssize_t = 0
    number: cython.Py_ssize_t
    power: cython.Py_ssize_t
    head: cython.Py_ssize_t
    verb: cython.Py_ssize_t
    tail: cython.Py_ssize_t
    subject_end: cython.Py_ssize_t
    while at < size:
        found: cython.p_const_char = cython.cast(cython.p_const_char, memchr(data + at, 10, size - at))
        if found == cython.NULL:
            return at
        end: cython.Py_ssize_t = found - data
        verb = 4 if data[at] == ord("P") and data[at + 1] == ord("U") else 5 if data[at] == ord("H") else 0
        if verb == 0:
            control(descriptor, data + at, end - 1 - at)
            at = end + 1
            continue
        head = end - 2  # the last digit, before the CRLF
        number = 0
        power = 1
        while data[head] != ord(" "):
            number += power * (data[head] - ord("0"))
            power *= 10
            head -= 1
        tail = end + 1 + number + 2
        if tail > size:
            return at
        found = cython.cast(cython.p_const_char, memchr(data + at + verb, 32, end - at - verb))
        subject_end = found - data
        deliver(
            known(data + at + verb, subject_end - at - verb),
            b"MSG " if verb == 4 else b"HMSG ",
            verb,
            data + at + verb,
            subject_end - at - verb,
            data + subject_end + 1,
            tail - subject_end - 1,
        )
        at = tail
    return at


def control(descriptor: cython.int, line: cython.p_const_char, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """CONNECT, PING, PONG, and SUB without a queue group."""
    global interested, generation, wild_count
    if line[0] == ord("P") and line[1] == ord("I"):
        write_text(descriptor, b"PONG\r\n", 6)
    elif line[0] == ord("S"):
        words: list[bytes] = line[:size].split()
        if interested == MOST_INTERESTS:
            raise OSError("no more subscriptions")
        place: Interests = cython.address(interests[interested])
        place.descriptor = descriptor
        subject: bytes = words[1]
        sid: bytes = words[2]
        place.subject_size = len(subject)
        place.sid_size = len(sid) + 1
        memcpy(place.subject, cython.cast(cython.p_const_char, subject), len(subject))
        memcpy(place.sid, cython.cast(cython.p_const_char, sid), len(sid))
        place.sid[len(sid)] = ord(" ")
        if subject[-1:] in (b"*", b">"):
            wild[wild_count] = interested
            wild_count += 1
        else:
            slot: cython.p_int = literal(place.subject, place.subject_size)
            place.following = slot[0]
            slot[0] = interested + 1
        interested += 1
        generation += 1
    return 0


# ── who gets it ──


def known(subject: cython.p_const_char, size: cython.Py_ssize_t) -> Knowns:
    """The subject's entry in the hash; created if necessary."""
    mixed: uint64_t = size ^ generation << 16  # so that entries made before the last SUB are not found
    at: cython.Py_ssize_t
    for at in range(size):
        mixed = (mixed ^ cython.cast(cython.uchar, subject[at])) * PRIME
    first: uint64_t = mixed ^ (mixed >> 29)
    found: Knowns = cython.NULL
    step: cython.int
    for step in range(NEAR):
        found = cython.address(table[(first + step) & (SLOTS - 1)])
        if found.size == size and found.hash == mixed and memcmp(found.subject, subject, size) == 0:
            return found
    for step in range(NEAR):
        found = cython.address(table[(first + step) & (SLOTS - 1)])
        if found.generation != generation:
            break
    return remember(found, mixed, subject, size)


def remember(found: Knowns, mixed: uint64_t, subject: cython.p_const_char, size: cython.Py_ssize_t) -> Knowns:
    """Have this entry be the subject's."""
    if size >= SUBJECT:
        raise OSError("a subject that is longer than the relay takes")
    found.hash = mixed
    found.size = size
    found.count = 0
    found.generation = generation
    memcpy(found.subject, subject, size)
    number: cython.int = literal(subject, size)[0]
    while number > 0:
        if interests[number - 1].descriptor >= 0:
            add_target(found, number - 1)
        number = interests[number - 1].following
    for number in range(wild_count):
        if covers(cython.address(interests[wild[number]]), subject, size):
            add_target(found, wild[number])
    return found


def add_target(found: Knowns, number: cython.int) -> cython.int:
    count: cython.int = found.count
    if count < TARGETS:
        found.targets[count] = number
    else:
        if count == TARGETS or (count >= 32 and count & (count - 1) == 0):
            size: cython.Py_ssize_t = max(32, 2 * count)
            found.more = cython.cast(cython.p_int, realloc(found.more, size * cython.sizeof(cython.int)))
            if found.more == cython.NULL:
                raise MemoryError
            if count == TARGETS:
                memcpy(found.more, found.targets, TARGETS * cython.sizeof(cython.int))
        found.more[count] = number
    found.count = count + 1
    return 0


def literal(subject: cython.p_const_char, size: cython.Py_ssize_t) -> cython.p_int:
    """Where the hash of literal subjects has this one; 0 stands there when it has not."""
    mixed: uint64_t = size
    at: cython.Py_ssize_t
    for at in range(size):
        mixed = (mixed ^ cython.cast(cython.uchar, subject[at])) * PRIME
    mixed ^= mixed >> 29
    while True:
        slot: cython.p_int = cython.address(literals[mixed & (SLOTS - 1)])
        if slot[0] == 0:
            return slot
        interest: Interests = cython.address(interests[slot[0] - 1])
        if interest.subject_size == size and memcmp(interest.subject, subject, size) == 0:
            return slot
        mixed += 1


def covers(interest: Interests, subject: cython.p_const_char, size: cython.Py_ssize_t) -> cython.bint:
    """Of an interest with a wildcard, which is the last token."""
    own: cython.int = interest.subject_size
    if interest.descriptor < 0 or size < own or memcmp(interest.subject, subject, own - 1) != 0:
        return False
    if interest.subject[own - 1] == ord(">"):
        return True
    alone: cython.bint = memchr(subject + own - 1, ord("."), size - own + 1) == cython.NULL
    return alone


# ── out ──


def deliver(
    found: Knowns,
    verb: cython.p_const_char,
    verb_size: cython.Py_ssize_t,
    subject: cython.p_const_char,
    size: cython.Py_ssize_t,
    tail: cython.p_const_char,
    tail_size: cython.Py_ssize_t,
) -> cython.int:
    """`tail`: everything after the subject and its blank, to the end of the payload."""
    number: cython.int
    targets: cython.p_int = found.more
    if found.count <= TARGETS:
        targets = cython.address(found.targets[0])
    for number in range(found.count):
        interest: Interests = cython.address(interests[targets[number]])
        to: cython.p_char = room(interest.descriptor, verb_size + size + interest.sid_size + 1 + tail_size)
        memcpy(to, verb, verb_size)
        to += verb_size
        memcpy(to, subject, size + 1)
        to += size + 1
        memcpy(to, interest.sid, interest.sid_size)
        memcpy(to + interest.sid_size, tail, tail_size)
    return 0


def write_text(descriptor: cython.int, text: cython.p_const_char, size: cython.Py_ssize_t) -> cython.int:
    memcpy(room(descriptor, size), text, size)
    return 0


def room(descriptor: cython.int, size: cython.Py_ssize_t) -> cython.p_char:
    """Reserve `size` bytes of output, which count as written."""
    global dirty_count
    link: Links = cython.address(links[descriptor])
    if link.end + size > link.room:
        if link.begin:
            memmove(link.out, link.out + link.begin, link.end - link.begin)
            link.end -= link.begin
            link.begin = 0
        while link.end + size > link.room:
            link.room = 2 * link.room if link.room else FIRST_ROOM
        link.out = cython.cast(cython.p_char, realloc(link.out, link.room))
        if link.out == cython.NULL:
            raise MemoryError
    if not link.dirty:
        link.dirty = True
        dirty[dirty_count] = descriptor
        dirty_count += 1
    link.end += size
    return link.out + link.end - size


def flush(descriptor: cython.int) -> cython.int:
    """One write; the rest waits until the socket is writable, or blocks when there is too much of it."""
    link: Links = cython.address(links[descriptor])
    if not link.open:
        return 0
    size: cython.Py_ssize_t = link.end - link.begin
    patience: cython.int = 0 if size > HIGH else MSG_DONTWAIT
    sent: cython.Py_ssize_t = send(descriptor, link.out + link.begin, size, patience | MSG_NOSIGNAL)
    if sent > 0:
        link.begin += sent
    if link.begin == link.end:
        link.begin = link.end = 0
    if link.stuck != (link.end > 0):
        link.stuck = link.end > 0
        watch(descriptor, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT if link.stuck else EPOLLIN)
    return 0


def drop(descriptor: cython.int) -> cython.int:
    global generation
    link: Links = cython.address(links[descriptor])
    watch(descriptor, EPOLL_CTL_DEL, 0)
    link.open = link.stuck = False
    link.begin = link.end = link.kept = 0
    number: cython.int
    for number in range(interested):
        if interests[number].descriptor == descriptor:
            interests[number].descriptor = -1
    generation += 1
    _sockets.pop(descriptor).close()
    return 0


# ── life ──

_sockets: dict[int, socket.socket] = {}


def accept(listener: socket.socket) -> None:
    global interested, wild_count
    link, _ = listener.accept()
    if not _sockets and interested > 0:
        interested = wild_count = 0
        memset(literals, 0, SLOTS * cython.sizeof(cython.int))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.sendall(INFO)
    descriptor: cython.int = link.fileno()
    if descriptor >= MOST_LINKS:
        raise OSError("no more connections")
    _sockets[descriptor] = link
    links[descriptor].open = True
    watch(descriptor, EPOLL_CTL_ADD, EPOLLIN)


def main() -> None:
    global links, interests, table, events, arrived, poll, dirty, dirty_count, literals, wild
    links = cython.cast(Links, calloc(MOST_LINKS, cython.sizeof(Link)))
    interests = cython.cast(Interests, calloc(MOST_INTERESTS, cython.sizeof(Interest)))
    literals = cython.cast(cython.p_int, calloc(SLOTS, cython.sizeof(cython.int)))
    wild = cython.cast(cython.p_int, calloc(MOST_INTERESTS, cython.sizeof(cython.int)))
    table = cython.cast(Knowns, calloc(SLOTS, cython.sizeof(Known)))
    events = cython.cast(Events, calloc(EVENTS, cython.sizeof(Event)))
    arrived = cython.cast(cython.p_char, calloc(2, READ))
    dirty = cython.cast(cython.p_int, calloc(MOST_LINKS, cython.sizeof(cython.int)))
    poll = epoll_create1(0)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    pacing.prepare(listener)  # as the broker's: pauses of the system's congestion control can be left out
    listener.listen(512)
    waiting: cython.int = listener.fileno()
    watch(waiting, EPOLL_CTL_ADD, EPOLLIN)
    print(f"Listening for client connections on 127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
    number: cython.int
    descriptor: cython.int
    while True:
        ready: cython.int = epoll_wait(poll, events, EVENTS, -1)
        dirty_count = 0
        for number in range(ready):
            descriptor = events[number].data.fd
            if descriptor == waiting:
                accept(listener)
                continue
            if events[number].events & EPOLLOUT:
                flush(descriptor)
            if events[number].events & ~cython.cast(cython.uint, EPOLLOUT) and links[descriptor].open:
                read_from(descriptor)
        for number in range(dirty_count):
            links[dirty[number]].dirty = False
            flush(dirty[number])


if __name__ == "__main__":
    main()
