"""Conversations of real brokers, as they were recorded (tests/vectors/routes): whole byte streams per direction."""

import ast
import re
from pathlib import Path

VECTORS = Path(__file__).parents[1] / "vectors" / "routes"
_LINE = re.compile(r"^ *[0-9.]+ #(\d+) (\S+) ('.*'|\".*\")$")
_PART = re.compile(r"^#+  PART (\d+):")


def streams(file: str, part: int) -> dict[tuple[int, str], bytes]:
    """`(connection, "A->B")` to all bytes that went that way, for one part of a transcript."""
    found: dict[tuple[int, str], bytes] = {}
    current = 0
    for line in (VECTORS / file).read_text().splitlines():
        if heading := _PART.match(line):
            current = int(heading[1])
        if current == part and (matched := _LINE.match(line)):
            key = (int(matched[1]), matched[2])
            found[key] = found.get(key, b"") + ast.literal_eval("b" + matched[3])
    return found
