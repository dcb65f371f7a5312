"""`headwater stream backup|restore` and `headwater account …`, with the terms and files of the `nats` tool."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from headwater.cli.commands import Commands, Exit, Option
from headwater.cli.nats_session import current, jetstream_of, run_app, spell_bytes, table
from headwater.client.client import Client
from headwater.errors import HeadwaterError

if TYPE_CHECKING:  # every `headwater stream …` imports this file: what reads and writes backups is imported where used
    from headwater.client.jetstream_types import StreamInfo
    from headwater.operations.backups import Saved

account_app = Commands("The account of the connection.")

PROGRESS_SECONDS = 0.2

NoProgress = Annotated[bool, Option("--no-progress", help="say nothing on the way")]
Consumers = Annotated[bool, Option("--consumers/--no-consumers", help="with the states of consumers")]


def account(arguments: list[str]) -> int:
    """The verb `account`."""
    return run_app(account_app, "account", arguments)


class _Line:
    """One progress line on stderr if it is a terminal; otherwise nothing."""

    def __init__(self, title: str, *, quiet: bool) -> None:
        self._title = title
        self._quiet = quiet or not sys.stderr.isatty()
        self._shown = 0.0

    def show(self, text: str) -> None:
        now = time.monotonic()
        if not self._quiet and now - self._shown >= PROGRESS_SECONDS:
            self._shown = now
            print(f"\r{self._title}: {text}\x1b[K", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def backup_stream(name: str, directory: Path, consumers: Consumers = True, no_progress: NoProgress = False) -> None:
    """Back up a stream into a new DIRECTORY."""
    saved = current().run(lambda client: _save(client, name, directory, consumers=consumers, quiet=no_progress))
    current().show(saved._asdict(), lambda: [_saved(saved, directory)])


def restore_backup(
    directory: Path,
    name: Annotated[str, Option("--name", help="another name than that of the backup")] = "",
    no_progress: NoProgress = False,
) -> None:
    """Restore a stream, with its consumers, from the backup in DIRECTORY."""
    info = current().run(lambda client: _restore(client, directory, name=name, quiet=no_progress))
    current().show(info, lambda: [_restored(info)])


@account_app.command("info")
def account_info() -> None:
    """What the account stores, and what it may."""
    info = current().run(lambda client: jetstream_of(client).account_info())

    def limit(count: int) -> str:
        return "unlimited" if count < 0 else spell_bytes(count)

    limits = info.limits
    lines = [
        f"   Streams: {info.streams} of {'unlimited' if limits.max_streams < 0 else limits.max_streams}",
        f" Consumers: {info.consumers} of {'unlimited' if limits.max_consumers < 0 else limits.max_consumers}",
        f"   On Disk: {spell_bytes(info.storage)} of {limit(limits.max_storage)}",
        f" In Memory: {spell_bytes(info.memory)} of {limit(limits.max_memory)}",
    ]
    current().show(info, lambda: lines)


@account_app.command("report")
def account_report() -> None:
    """The connections of the account, by what each has sent and received."""
    from headwater.operations.servers import ask

    async def run(client: Client) -> list[dict[str, Any]]:
        answers = await ask(client, "PING.CONNZ", current().timeout)
        return [one for answer in answers for one in answer["data"].get("connections", [])]

    found = sorted(
        current().run(run), key=lambda one: int(one.get("in_msgs", 0)) + int(one.get("out_msgs", 0)), reverse=True
    )
    if current().json:
        current().show(found, list)
        return
    rows = [
        (
            one.get("cid", ""),
            one.get("name", ""),
            one.get("ip", ""),
            one.get("lang", ""),
            one.get("uptime", ""),
            one.get("subscriptions", 0),
            f"{one.get('in_msgs', 0):,}",
            f"{one.get('out_msgs', 0):,}",
            spell_bytes(int(one.get("in_bytes", 0))),
            spell_bytes(int(one.get("out_bytes", 0))),
        )
        for one in found
    ]
    headings = ["Id", "Name", "Address", "Client", "Uptime", "Subs", "In", "Out", "Bytes in", "Bytes out"]
    table(f"{len(rows)} connections", headings, rows)


@account_app.command("backup")
def backup_account(directory: Path, consumers: Consumers = True, no_progress: NoProgress = False) -> None:
    """Back up every stream of the account, each into a directory of its own name below DIRECTORY."""
    from headwater.operations.backups import Saved

    async def run(client: Client) -> dict[str, Saved | str]:
        done: dict[str, Saved | str] = {}
        for name in await jetstream_of(client).stream_names():
            try:
                done[name] = await _save(client, name, directory / name, consumers=consumers, quiet=no_progress)
            except HeadwaterError as error:
                done[name] = str(error)
        return done

    done = current().run(run)
    _report(done, {name: _saved(it, directory / name) for name, it in done.items() if isinstance(it, Saved)})


@account_app.command("restore")
def restore_account(directory: Path, no_progress: NoProgress = False) -> None:
    """Restore every stream that `account backup` has put below DIRECTORY; one that fails does not stop the others."""
    from headwater.client.jetstream_types import StreamInfo
    from headwater.operations.backups import saved_streams

    backups = saved_streams(directory)

    async def run(client: Client) -> dict[str, StreamInfo | str]:
        done: dict[str, StreamInfo | str] = {}
        for path in backups:
            try:
                done[path.name] = await _restore(client, path, name="", quiet=no_progress)
            except HeadwaterError as error:
                done[path.name] = str(error)
        return done

    done = current().run(run)
    _report(done, {name: _restored(it) for name, it in done.items() if isinstance(it, StreamInfo)})


async def _save(client: Client, name: str, directory: Path, *, consumers: bool, quiet: bool) -> "Saved":
    from headwater.operations.backups import save_stream

    line = _Line(name, quiet=quiet)
    try:
        return await save_stream(
            client,
            jetstream_of(client),
            name,
            directory,
            lambda messages, size: line.show(f"{messages:,} messages, {spell_bytes(size)}"),
            consumers=consumers,
        )
    finally:
        line.clear()


async def _restore(client: Client, directory: Path, *, name: str, quiet: bool) -> "StreamInfo":
    from headwater.operations.backups import restore_stream
    from headwater.operations.old_backups import as_of_today

    line = _Line(name or directory.name, quiet=quiet)
    try:
        with as_of_today(directory) as (backup, converted):
            for problem in converted.problems if converted is not None else ():
                print(f"{directory.name}: {problem}", file=sys.stderr)
            return await restore_stream(
                client,
                jetstream_of(client),
                backup,
                lambda sent, size: line.show(f"{spell_bytes(sent)} of {spell_bytes(size)}"),
                name=name,
            )
    finally:
        line.clear()


def _saved(saved: "Saved", directory: Path) -> str:
    return f"Backed up Stream {saved.stream}: {saved.messages:,} messages, {spell_bytes(saved.bytes)} in {directory}"


def _restored(info: "StreamInfo") -> str:
    state = info.state
    return f"Restored Stream {info.config.name}: {state.messages:,} messages, {state.consumer_count} consumers"


def _report(done: "dict[str, Saved | str] | dict[str, StreamInfo | str]", good: dict[str, str]) -> None:
    """Report the outcome of each stream. Raises Exit(1) when one failed."""
    failed = {name: why for name, why in done.items() if isinstance(why, str)}
    if current().json:
        current().show({"done": sorted(good), "failed": failed}, list)
    else:
        for line in good.values():
            print(line)
    for name, why in failed.items():
        print(f"{name}: {why}", file=sys.stderr)
    if failed:
        raise Exit(1)
