"""The diagnostic snapshot of `GetSnapshot` and `POST /snapshot`: a ZIP archive with a text file for each subject.

It describes the server: its folder, process, statistics, findings in its store, and addresses. It runs no system
command and has no passwords or messages. One is made at a time.
"""

import io
import os
import zipfile
from collections.abc import Callable, Mapping
from typing import Final

from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.http_json import SNAPSHOT_PARTS

ALL: Final = 100
NAMES: Final = dict(enumerate(SNAPSHOT_PARTS, 1))
COMPRESSIONS: Final = {
    1: zipfile.ZIP_STORED,
    2: zipfile.ZIP_DEFLATED,
    3: zipfile.ZIP_BZIP2,
    5: zipfile.ZIP_LZMA,
}
Sections = Mapping[str, Callable[[], str]]


def chosen(types: list[int]) -> list[int]:
    """The requested subjects. Raises IggyError for an unknown one, and for "all" with others."""
    if types == [ALL]:
        return list(NAMES)
    for code in types:
        if code not in NAMES:
            raise refusal("invalid_command", f"a snapshot has no part {code} beside others", code)
    return types


def archive(compression: int, types: list[int], sections: Sections) -> bytes:
    """The archive. Blocks: it belongs in a thread. Raises IggyError for a compression that the ZIP library has not."""
    method = COMPRESSIONS.get(compression)
    if method is None:
        raise refusal("feature_unavailable", "an archive is stored, deflated, bzip2 or lzma", compression)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as file:
        for code in types:
            file.writestr(f"{NAMES[code]}.txt", sections[NAMES[code]]())
    return packed.getvalue()


def overview(directory: str) -> str:
    """The files of a folder, with their sizes."""
    lines = []
    for place, _, names in sorted(os.walk(directory)):
        for name in sorted(names):
            path = os.path.join(place, name)
            try:
                lines.append(f"{os.path.getsize(path):>14} {os.path.relpath(path, directory)}\n")
            except OSError as error:
                lines.append(f"{error.strerror:>14} {os.path.relpath(path, directory)}\n")
    return "".join(lines)


def text_of(path: str) -> str:
    """A file of the system, or why it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        return f"{path}: {error.strerror}\n"
