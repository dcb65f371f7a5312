"""`headwater serve --signal COMMAND[=PID]`: send a signal to a running server.

PID is a number or a file that contains one. Without it, the only server running on this machine gets the signal.
"""

import os
import signal
from itertools import pairwise
from pathlib import Path

from headwater.errors import ConfigError, EnvironmentProblem

COMMANDS = {
    "stop": signal.SIGKILL,
    "quit": signal.SIGINT,
    "term": signal.SIGTERM,
    "reopen": signal.SIGUSR1,
    "reload": signal.SIGHUP,
    "ldm": signal.SIGUSR2,
}


def send(request: str, processes: Path = Path("/proc")) -> None:
    """Send the signal. Raises ConfigError for an invalid request, EnvironmentProblem when no process can receive it."""
    command, equals, target = request.partition("=")
    if command not in COMMANDS:
        raise ConfigError(f'unknown signal "{command}"', value=command, limit=tuple(COMMANDS))
    process = _named(target) if equals else _only_one(running(processes))
    try:
        os.kill(process, COMMANDS[command])
    except OSError as error:
        raise EnvironmentProblem(f'signal "{command}" {process}: {error.strerror}', value=process) from error


def running(processes: Path) -> list[int]:
    """The ids of all other `headwater serve` processes, according to their command lines in /proc. Workers (`--workers`)
    are left out, because they get signals from their parent.
    """
    found: dict[int, int] = {}  # process id to parent id
    for entry in processes.glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # the process has ended
        serves = any(Path(before).name == "headwater" and word == "serve" for before, word in pairwise(words))
        if serves and not any(word.lstrip("-").startswith(("signal", "sl")) for word in words):
            found[int(entry.parent.name)] = _parent_of(entry.parent)
    return sorted(process for process, parent in found.items() if parent not in found)


def _parent_of(process: Path) -> int:
    """The parent's id; 0 when the process has ended. The program name is in brackets and may contain anything."""
    try:
        return int((process / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _named(target: str) -> int:
    try:
        text = Path(target).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        text = target
    if not (text.isascii() and text.isdigit() and 0 < int(text[:10]) < 1 << 31):
        raise ConfigError(f"invalid pid: {target}", value=target)
    return int(text)


def _only_one(found: list[int]) -> int:
    if not found:
        raise EnvironmentProblem("no headwater processes running", hint="name one: --signal reload=PID")
    if len(found) > 1:
        raise EnvironmentProblem(
            f"multiple headwater processes running: {', '.join(map(str, found))}",
            value=found,
            hint="name one: --signal reload=PID",
        )
    return found[0]
