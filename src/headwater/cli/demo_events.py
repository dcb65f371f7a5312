"""Sources of the demo's events: the git history of a checkout, or a file of JSON lines; both are read as CloudEvents.

An event's `source` and `id` depend on its content alone, so that reading the same input again gives the same events. This
lets a stream drop the duplicates when the demo runs a second time, or was killed half-way.

    commit   {"repo", "sha", ...}   source /<repo>        id <sha>            type dev.headwater.demo.commit
    other    any JSON object        source /<file name>   id <its own id>     type dev.headwater.demo.event
                                                          or its digest

A line that is not a JSON object is counted, the first one is reported, and reading continues.
"""

import gzip
import hashlib
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from headwater.cloudevents import CloudEvent
from headwater.errors import CloudEventError, EnvironmentProblem

COMMIT = "dev.headwater.demo.commit"
EVENT = "dev.headwater.demo.event"
SUBJECTS = "events.>"

_NOT_IN_TOKEN = re.compile(r"[\s.*>\x00-\x1f]+")
_FORMAT = "%x1e%H%x1f%aI%x1f%cI%x1f%ae%x1f%s"  # record and unit separators, which no subject line contains
_GIT_SECONDS = 120


class EventLines:
    """Converts lines to events. `refused` counts lines that are not valid events; `first_refusal` is the first error."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.refused = 0
        self.first_refusal = ""
        self._digests: Counter[str] = Counter()

    def events(self, lines: Iterable[bytes]) -> Iterator[tuple[str, CloudEvent]]:
        """The NATS subject and the event of each line; blank lines are skipped."""
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield self._read(line.strip())
            except (msgspec.MsgspecError, UnicodeDecodeError, CloudEventError) as error:
                self.refused += 1
                self.first_refusal = self.first_refusal or f"line {number}: {error}"

    def _read(self, line: bytes) -> tuple[str, CloudEvent]:
        found = msgspec.json.decode(line, type=dict[str, Any])
        repo, sha = found.get("repo"), found.get("sha")
        if isinstance(repo, str) and isinstance(sha, str) and repo and sha:
            kind, source, identity, time = COMMIT, repo, sha, found.get("committed_at")
        else:
            kind, source, identity, time = EVENT, self.name, self._identity(found, line), found.get("time")
        event = CloudEvent(
            id=identity,
            source="/" + quote(source),  # a valid URI reference for any folder or file name
            type=kind,
            time=time if isinstance(time, str) else None,
            datacontenttype="application/json",
            data=msgspec.Raw(line),
        )
        return f"events.{kind.rpartition('.')[2]}.{_token(source)}", event

    def _identity(self, found: dict[str, Any], line: bytes) -> str:
        own = found.get("id")
        if isinstance(own, str | int) and not isinstance(own, bool) and str(own):
            return str(own)
        digest = hashlib.sha256(line).hexdigest()[:32]
        # Two equal lines are two events; their order does not matter.
        self._digests[digest] += 1
        return digest if self._digests[digest] == 1 else f"{digest}-{self._digests[digest]}"


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, gzip or plain. Raises EnvironmentProblem when it cannot be read."""
    try:
        opened = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
        with opened as lines:
            yield from lines
    except (OSError, EOFError) as error:
        raise EnvironmentProblem(
            f"cannot read {path}: {error}", value=path, hint="name a file of JSON lines"
        ) from error


def git_history(checkout: Path) -> Iterator[bytes]:
    """One JSON line per commit of a checkout, oldest first, in the form of a commit event; authors are digests. Raises
    EnvironmentProblem without git or without a history.
    """
    command = ["git", "-C", str(checkout), "log", "--reverse", "--numstat", f"--format={_FORMAT}"]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_GIT_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentProblem(
            f"{checkout} has no git history that can be read", value=checkout, hint="name a file with --events"
        ) from error
    for record in done.stdout.decode("utf-8", "replace").split("\x1e")[1:]:
        head, _, rest = record.partition("\n")
        sha, authored, committed, email, subject = head.split("\x1f", 4)
        yield msgspec.json.encode(
            {
                "repo": checkout.resolve().name,
                "sha": sha,
                "authored_at": authored,
                "committed_at": committed,
                "author": hashlib.sha256(email.encode()).hexdigest()[:12],
                "subject": subject,
                "files": [_changed(line) for line in rest.splitlines() if line.count("\t") == 2],
            }
        )


def _changed(line: str) -> dict[str, object]:
    """Parse `<added>\\t<deleted>\\t<path>` of --numstat; binary files have dashes instead of numbers."""
    added, deleted, path = line.split("\t")
    return {
        "path": path,
        "added": int(added) if added.isdigit() else 0,
        "deleted": int(deleted) if deleted.isdigit() else 0,
    }


def _token(name: str) -> str:
    return _NOT_IN_TOKEN.sub("_", name.replace("/", "_")) or "_"
