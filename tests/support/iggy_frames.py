"""The captured conversations of real Iggy clients (`tests/vectors/iggy_frames/`), one exchange after the other."""

import re
from pathlib import Path
from typing import NamedTuple

from headwater.iggy_wire.eras import Era

FOLDER = Path(__file__).parent.parent / "vectors" / "iggy_frames"
ERAS = {
    "iggy-py_0.1.0": Era.A,
    "iggy-py_0.2.0": Era.A2,
    "iggy-py_0.2.3": Era.B,
    "iggy-py_0.2.7": Era.B,
    "iggy-py_0.4.0": Era.B,
    "apache-iggy_0.5.0": Era.C1,
    "apache-iggy_0.6.0": Era.C2,
    "apache-iggy_0.7.0": Era.C3,
    "apache-iggy_0.8.0": Era.C3,
    "apache-iggy_0.9.0": Era.V,
}
_REQUEST = re.compile(r"^C->S (?:VSR .*)?code=(\d+)")


class Exchange(NamedTuple):
    """One request and the reply that the client accepted, as whole frames; `code` as the capture names it."""

    code: int
    request: bytes
    reply: bytes


def exchanges(client: str) -> list[Exchange]:
    """All exchanges of one capture, in order."""
    found: list[Exchange] = []
    code, request, reply, into_reply = -1, b"", b"", False
    for line in (FOLDER / f"{client}.txt").read_text(encoding="utf-8").splitlines():
        start = _REQUEST.match(line)
        if start or line.startswith("# closed"):
            if code >= 0:
                found.append(Exchange(code, request, reply))
            code, request, reply, into_reply = int(start[1]) if start else -1, b"", b"", False
        elif line.startswith("S->C"):
            into_reply = True
        elif line.startswith("  "):
            raw = bytes.fromhex(line.split()[-1]) if line.split()[-1:] not in (["header"], ["body"], []) else b""
            if into_reply:
                reply += raw
            else:
                request += raw
    return found
