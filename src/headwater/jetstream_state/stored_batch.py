# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""What the messages of a batch leave to do once they are durable: roll-ups, TTLs, republishing.

Hot and compiled: it runs over every message of a stream with such settings. What is looked up before the batch is
counted: `subject_table`.
"""

from collections.abc import Callable
from heapq import heappush
from typing import TYPE_CHECKING

import cython

if cython.compiled:
    from cython.cimports.headwater.jetstream_state.items import Item, Particulars
else:
    from headwater.jetstream_state.items import Item, Particulars

if TYPE_CHECKING:
    from headwater.jetstream_state.contents import Contents


def attend(
    items: list[Item],
    contents: "Contents",
    is_needed: Callable[[Item], bool] | None,
    republish: Callable[[Item], None] | None,
) -> None:
    """Apply roll-ups and TTLs of messages that became durable, and republish them. `is_needed(item)`: whether it is still
    there; None: all are. Messages that roll-ups replace leave together."""
    expires: cython.bint = contents.config.allow_msg_ttl
    entries: list[tuple[int, int]] = contents.expiry.entries
    replaced: dict[int, tuple[int, int]] = contents.replaced
    gone: list[tuple[int, bytes, int]] = []
    particulars: Particulars | None
    item: Item
    for item in items:
        particulars = item.particulars
        if particulars is None or (is_needed is not None and not is_needed(item)):
            continue
        if particulars.rollup:
            only = replaced.get(item.sequence) if replaced else None
            if only is not None and only[1]:
                gone.append((only[0], item.subject, only[1]))
            else:
                if gone:
                    contents.remove_known(gone)
                    gone = []
                contents.roll_up(particulars.rollup, item.subject, item.sequence)
        if expires and particulars.ttl_ns > 0:
            heappush(entries, (particulars.timestamp_ns + particulars.ttl_ns, item.sequence))
        elif expires and particulars.ttl_ns < 0 and particulars.header_block:
            contents.expiry.note(item.sequence, particulars.header_block, particulars.timestamp_ns)
        if republish is not None:
            republish(item)
    if gone:
        contents.remove_known(gone)
