"""A new stream's directory under its first name, `<name>-<digest>.begun`.

A creation makes its files and that name durable side by side, in one wait for the disk, and then renames the directory
without a second wait. Where a power loss undoes the rename, the next start repeats it. It finds the remains of creations
that were never answered under such names, too: a directory that lacks something which the creation makes durable before
the answer, and that holds nothing that comes later (a message, a consumer), is one of those and is removed. Everything
else is a stream, damaged or not, and is never removed here.
"""

from collections.abc import Collection

from headwater.durable_files import documents
from headwater.durable_files.files import Files
from headwater.durable_files.store_directory import remove_tree
from headwater.streams.head_page import HEAD_PAGE_SIZE, decode_segment_head
from headwater.streams.opening import LOCK
from headwater.streams.ownership import STATE_DOCUMENT
from headwater.streams.segment import SUFFIX

BEGUN = ".begun"
DOCUMENT = "stream"
LOG = "log"
_DOCUMENTS = (DOCUMENT, f"{LOG}/{STATE_DOCUMENT}")
_COPIES = {document + suffix for document in _DOCUMENTS for suffix in documents.COPIES}


def finish_begun(files: Files, parent: str, name: str, names: Collection[str]) -> str:
    """Give the directory `name` of `parent`, which ends in BEGUN, its final name, or remove it where no answer was given
    for it; returns the name that it has then, "" for none. `names`: what is in `parent`; where the final name is taken, this
    is a copy made by hand, and stays. Raises OSError."""
    final = name.removesuffix(BEGUN)
    if is_unanswered(files, f"{parent}/{name}"):
        remove_tree(files, f"{parent}/{name}")
        return ""
    if final in names:
        return name
    files.rename(f"{parent}/{name}", f"{parent}/{final}")
    return final


def is_unanswered(files: Files, path: str) -> bool:
    """Whether the creation of this stream was not answered. Raises OSError."""
    names = set(files.listdir(path))
    if LOG in names:
        names = names - {LOG} | {f"{LOG}/{name}" for name in files.listdir(f"{path}/{LOG}") if name != LOCK}
    segments = {name for name in names if name.endswith(SUFFIX)}
    if names - _COPIES - segments or len(segments) > 1:
        return False
    has_head = False
    for name in segments:
        file = files.open(f"{path}/{name}")
        try:
            if file.size() > HEAD_PAGE_SIZE:
                return False
            has_head = decode_segment_head(file.pread(HEAD_PAGE_SIZE, 0)) is not None
        finally:
            file.close()
    intact = sum(len(documents.copies(files, f"{path}/{document}", [])) for document in _DOCUMENTS)
    return not has_head or intact < len(_COPIES)
