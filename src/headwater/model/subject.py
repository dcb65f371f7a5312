"""Subject rules (client protocol document; nats-server's behaviour where the document is silent).

    subject = token *("." token)      token: one or more bytes, none of SP, HTAB, CR, LF and "."
    pattern = the same, where a token that is exactly "*" stands for one token, and a last token that is exactly ">"
              for one or more

Subjects are bytes on the wire, without a character set; `foo*` and `>>` are literal tokens. The functions on bytes
return a bool; the one on str is for programs, and raises.
"""

import re
from collections.abc import Iterable

from headwater.errors import SubjectError

_FORBIDDEN = re.compile(rb"[ \t\r\n]")


def is_valid_subject(subject: bytes) -> bool:
    """Whether a subscription may name `subject`: no empty token, no whitespace, `>` only as the last token."""
    if not subject or _FORBIDDEN.search(subject):
        return False
    tokens = subject.split(b".")
    return b"" not in tokens and b">" not in tokens[:-1]


def encode_subjects(subjects: Iterable[str]) -> list[bytes]:
    """Subjects of a document in their wire form; bytes that are not UTF-8 come through unchanged."""
    return [subject.encode("utf-8", "surrogateescape") for subject in subjects]


def is_literal(subject: bytes) -> bool:
    """Whether no token of `subject` is a wildcard."""
    if b"*" not in subject and b">" not in subject:
        return True
    tokens = subject.split(b".")
    return b"*" not in tokens and tokens[-1] != b">"


def is_within(narrow: bytes, wide: bytes) -> bool:
    """Whether every literal subject that the pattern `narrow` matches is matched by `wide`, too."""
    inner, outer = narrow.split(b"."), wide.split(b".")
    if outer[-1] == b">":
        outer.pop()
        if len(inner) <= len(outer):
            return False
        inner = inner[: len(outer)]
    return len(inner) == len(outer) and all(
        one == other or (other == b"*" and one != b">") for one, other in zip(inner, outer, strict=True)
    )


def patterns_overlap(left: bytes, right: bytes) -> bool:
    """Whether some literal subject matches both patterns."""
    ours, theirs = left.split(b"."), right.split(b".")
    for position in range(max(len(ours), len(theirs))):
        if position >= len(ours) or position >= len(theirs):
            return False
        a, b = ours[position], theirs[position]
        if b">" in (a, b) and (position == len(ours) - 1 if a == b">" else position == len(theirs) - 1):
            return True
        if a != b and b"*" not in (a, b):
            return False
    return True


def validate_subject(subject: str, *, wildcards: bool = False) -> str:
    """`subject` itself, when a program may publish to it (or subscribe, with `wildcards`).

    Raises SubjectError with the reason.
    """
    if not subject:
        raise SubjectError("the subject is empty", value=subject)
    if found := re.search(r"[ \t\r\n]", subject):
        raise SubjectError(f"the subject {subject!r} contains {found.group()!r}", value=subject, limit="no whitespace")
    tokens = subject.split(".")
    if "" in tokens:
        raise SubjectError(f"the subject {subject!r} has an empty token", value=subject, limit="a.b.c")
    if wildcards and ">" in tokens[:-1]:
        raise SubjectError(f"in {subject!r} the wildcard > is not the last token", value=subject)
    if not wildcards and ("*" in tokens or ">" in tokens):
        raise SubjectError(f"{subject!r} has a wildcard: a message needs a literal subject", value=subject)
    return subject
