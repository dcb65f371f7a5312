"""The generations of Iggy's wire protocol, and how one port distinguishes them.

| era | clients | recognized by |
|---|---|---|
| S  | crate 0.0.30, the seed document; no package     | no login comes: only on a port configured as the seed's      |
| A  | iggy-py 0.1                                     | login without a version, create_topic without compression    |
| A2 | iggy-py 0.2.0                                   | login without a version                                      |
| B  | iggy-py 0.2.3 to 0.4                            | login says 0.5 or 0.6                                        |
| C1 | apache-iggy 0.5                                 | login says 0.7                                               |
| C2 | apache-iggy 0.6                                 | login says 0.8                                               |
| C3 | apache-iggy 0.7, 0.8                            | login says 0.9, 0.10                                         |
| V  | apache-iggy 0.9                                 | the first four bytes are zero: a 256-byte header follows     |
| W  | apache-iggy 0.9.1.dev2 to dev5, crates between  | as V, and the login says protocol 0.12.0 or 0.12.1           |
| X  | crates 0.11.1-edge.7 to edge.9                  | as V, and the login says protocol 0.12.2                     |

A length of zero cannot begin a classic frame, so the first four bytes decide between V and later on one side and the
rest. What may come before a login (ping, and nothing else) looks the same in all classic eras, and in all modern ones.

The protocol of V and later has a number of its own. Every patch level of 0.11 is one layout. In 0.12 a patch level may
change the layout (0.12.2 made the description of a partition longer), so only known ones are supported.
"""

import re
from enum import IntEnum
from typing import Final

from headwater.iggy_wire.error_numbers import refusal


class Era(IntEnum):
    """In order of time: a later era compares greater."""

    S = 0
    A = 1
    A2 = 2
    B = 3
    C1 = 4
    C2 = 5
    C3 = 6
    V = 7
    W = 8
    X = 9

    @property
    def first_id(self) -> int:
        """The first id of streams, topics and partitions: 1 in the older eras."""
        return 1 if self < Era.C2 else 0

    @property
    def typed_keys(self) -> bool:
        """Whether the key of a header has a kind."""
        return self >= Era.C3

    @property
    def has_index_table(self) -> bool:
        """Whether messages are blocks with a header of fixed size, and a send includes a table of their ends."""
        return Era.C1 <= self <= Era.C3


UNKNOWN = Era.B  # until the login names a version; the commands allowed before it are the same in all eras


def of_login(version: str | None) -> Era:
    """The era of a client, from the version in its login. Raises IggyError for a version that is not supported."""
    if not version:
        return Era.A2
    numbers = version.split(".")
    if numbers[0] != "0" or len(numbers) < 2 or not re.fullmatch("[0-9]{1,9}", numbers[1]):
        raise refusal("incompatible_protocol_version", f"client version {version!r} is not known here", version)
    minor = int(numbers[1])
    if minor <= 6:
        return Era.B
    return {7: Era.C1, 8: Era.C2}.get(minor, Era.C3)


_CRATE: Final = re.compile(r"0\.(\d{1,9})\.(\d{1,9})(?:-edge\.(\d{1,9}))?", re.ASCII)
_FIRST_OF_W, _FIRST_OF_X = (11, 1, 2), (11, 1, 7)  # edge.2 speaks 0.12.0, edge.7 speaks 0.12.2
_RELEASED: Final = 1 << 30  # after every edge


def of_crate(version: object) -> Era:
    """The era of a client over HTTP, whose login names no protocol but the version of its library: "0.11.0",
    "0.11.1-edge.5". V where it names none that is known: 0.12's answers over HTTP are 0.11's with more in them."""
    found = _CRATE.fullmatch(version) if isinstance(version, str) else None
    if found is None:
        return Era.V
    number = int(found[1]), int(found[2]), int(found[3] or _RELEASED)
    return Era.V if number < _FIRST_OF_W else Era.W if number < _FIRST_OF_X else Era.X


_MINOR: Final = 1 << 10
PROTOCOL: Final = 0 << 20 | 11 << 10 | 0  # of era V: 0.11.0, which our client speaks
NEWEST_PROTOCOL: Final = 0 << 20 | 12 << 10 | 2
_OF_PATCH: Final = {0: Era.W, 1: Era.W, 2: Era.X}  # of 0.12


def of_protocol(protocol: int) -> Era:
    """The era of a modern client, from the protocol number in its login. Raises IggyError for an unsupported one."""
    if protocol // _MINOR == PROTOCOL // _MINOR:
        return Era.V
    found = _OF_PATCH.get(protocol % _MINOR) if protocol // _MINOR == NEWEST_PROTOCOL // _MINOR else None
    if found is None:
        supported = f"0.11 and 0.12.0 to {protocol_text(NEWEST_PROTOCOL)} are"
        raise refusal(
            "incompatible_protocol_version", f"protocol {protocol_text(protocol)} is not spoken, {supported}", protocol
        )
    return found


def protocol_text(protocol: int) -> str:
    """As "0.12.2"."""
    return f"{protocol >> 20}.{protocol >> 10 & 1023}.{protocol & 1023}"
