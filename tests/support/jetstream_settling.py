"""Holds a conversation about copies (`jetstream_copy_talk.py`) with two servers at once, step by step.

After each step both come to rest: what they store and say is the same and every mirror and source has answers of its origin
and lags behind nothing, or it is the same for STUCK seconds. What is still different after LONGEST is a difference.
"""

import json
import re
from base64 import b64decode
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import Any

from support.jetstream_conversation import Talk, is_tolerated
from support.jetstream_pair import API, mask
from support.jetstream_requests import Step
from support.raw_wire import dial

STUCK = 0.4
# Seconds; nats-server begins a source that was changed after up to two seconds, a second failure after four.
LONGEST = 8.0
_IDENTITY = re.compile(r"(Nats-Stream-Source: [^\r]*) [0-9A-Za-z]{8}(?=\r)")
_HELD_UP = {10054, 10077, 10109, 10172}  # INFO of ours says which limit holds a copy up

Ask = Callable[[str, Any], Any]


def first_difference(ports: tuple[int, int], steps: list[Step], quiet: float) -> tuple[int, Any, Any] | None:
    """The number of the step at which the two differ, and what each sent; None when they agree to the end."""
    with ExitStack() as stack:
        real, ours = (Talk(stack.enter_context(dial(port, no_responders=True)), quiet) for port in ports)
        stack.callback(_clear, (real, ours), steps)
        for number, step in enumerate(steps):
            if step.kind == "settle":
                theirs, mine = _settle((real.request, ours.request), step.subject.split(), quiet)
                moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                real.moments.append(moment)
                ours.moments.append(moment)
            elif _begins_otherwise(real.request, step):
                continue
            else:
                theirs, mine = real.take(step), ours.take(step)
            if theirs != mine and not is_tolerated(step, theirs, mine):
                return number, theirs, mine
    return None


def _begins_otherwise(ask: Ask, step: Step) -> bool:
    """Whether the step adds a source to a stream whose first messages are gone (also by the step itself: a lower max_msgs),
    or one with a start time to a stream with messages, where nats-server begins with the time of the last message; or it
    changes the start of one, or names an origin by an empty `external` (docs/jetstream.md)."""
    if b'"api": ""' in step.payload:
        return True
    if f"{API}STREAM.UPDATE." not in step.subject:
        return False
    document = json.loads(step.payload)
    wanted = document.get("sources") or ()
    info = ask(step.subject.replace("UPDATE", "INFO"), None)
    if "error" in info:
        return False
    present = info["config"].get("sources") or ()
    known = [_index(source) for source in present]
    added = [source for source in wanted if _index(source) not in known]
    state = info["state"]
    if any(source not in present for source in wanted if source not in added):
        return True
    return bool(added) and (
        state["first_seq"] > 1
        or 0 < document.get("max_msgs", -1) < state["messages"]
        or (state["last_seq"] > 0 and any("opt_start_time" in source for source in added))
    )


def _index(source: Any) -> Any:
    return source["name"], source.get("filter_subject") or ">", source.get("subject_transforms")


def _clear(talks: tuple[Talk, Talk], steps: list[Step]) -> None:
    """Without the streams, whatever became of the conversation."""
    for name in next(step.subject for step in steps if step.kind == "settle").split():
        for talk in talks:
            talk.request(f"{API}STREAM.DELETE.{name}", None)


def _settle(asks: tuple[Ask, Ask], streams: list[str], quiet: float) -> tuple[Any, Any]:
    start = changed = monotonic()
    before: Any = None
    while True:
        looks = [[_look(ask, name) for name in streams] for ask in asks]
        now = monotonic()
        real, ours = ([_shown(info) for info in look] for look in looks)
        for theirs, mine in zip(real, ours, strict=True):
            _forgive(theirs, mine)
        if [real, ours] != before:
            before, changed = [real, ours], now
        done = all(_is_done(info) for look in looks for info in look)
        at_rest = now - changed >= (quiet if done else STUCK)
        if (at_rest and real == ours) or now - start > LONGEST:
            rows = [[_messages(ask, info) for info in look] for ask, look in zip(asks, looks, strict=True)]
            return [real, rows[0]], [ours, rows[1]]
        sleep(0.01)


def _look(ask: Ask, name: str) -> Any:
    info = ask(f"{API}STREAM.INFO.{name}", {"deleted_details": True, "subjects_filter": ">"})
    if "error" in info:
        return None
    del info["ts"]
    for copied in _copied(info):
        copied["active"] = min(copied["active"], 0)
    return info


def _copied(info: Any) -> list[Any]:
    return [one for one in (info.get("mirror"), *(info.get("sources") or ())) if one is not None]


def _is_done(info: Any) -> bool:
    return info is None or all(not one["lag"] and one["active"] == 0 for one in _copied(info))


def _shown(info: Any) -> Any:
    if info is None:
        return None
    info = mask(info, {})
    state = info["state"]
    if state.get("deleted") == [0]:  # nats-server, of a stream that never held a message
        del state["deleted"], state["num_deleted"]
    if not state["last_seq"] and state["first_seq"] == 1:  # nats-server, once a consumer of such a stream is deleted
        state["first_seq"] = 0
    for one in _copied(info):
        if info["config"]["retention"] == "interest":
            one.pop("seq", None)  # in nats-server of the last message that a consumer wanted, here of the last one
    if info.get("sources"):
        info["sources"].sort(key=json.dumps)  # in nats-server in any order
    return info


def _forgive(real: Any, ours: Any) -> None:
    """INFO of ours says why a copy is held up, and how much it lacks."""
    for theirs, mine in zip(_copied(real or {}), _copied(ours or {}), strict=False):
        if mine.get("error", {}).get("err_code") in _HELD_UP:
            del mine["error"]
            mine["lag"] = theirs["lag"]


def _messages(ask: Ask, info: Any) -> list[Any]:
    if info is None:
        return []
    name, state = info["config"]["name"], info["state"]
    gone = set(state.get("deleted") or ())
    rows = []
    for sequence in range(max(state["first_seq"], 1), state["last_seq"] + 1):
        if sequence in gone:
            continue
        answer = ask(f"{API}STREAM.MSG.GET.{name}", {"seq": sequence})
        message = answer.get("message")
        if message is None:
            rows.append([sequence, answer.get("error")])
            continue
        block = b64decode(message.get("hdrs", "")).decode()
        rows.append(
            [
                message["seq"],
                message["subject"],
                _IDENTITY.sub(r"\1 *", block),
                b64decode(message.get("data", "")).decode(),
            ]
        )
    return rows
