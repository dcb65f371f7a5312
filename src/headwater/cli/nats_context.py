"""`headwater context …`: named connections, with the files and terms of the `nats` tool.

Both tools read and write the same files. Unknown fields in a file are kept; a file is replaced atomically, and only its
owner may read it.
"""

import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Any

import msgspec

from headwater.cli.commands import Argument, Commands, Option
from headwater.cli.nats_options import Force
from headwater.cli.nats_session import confirm, current, run_app, table
from headwater.client.contexts import (
    NatsContext,
    choose_context,
    chosen_context,
    context_names,
    context_path,
    read_context,
    write_context,
)
from headwater.client_connection.server_url import parse_server_urls
from headwater.errors import ConfigError

app = Commands("Named connections.")

SECRETS = ("password", "token")
FIELDS = {
    "servers": "url",
    "user": "user",
    "password": "password",
    "token": "token",
    "creds": "creds",
    "nkey_seed": "nkey",
    "tls_cert": "cert",
    "tls_key": "key",
    "tls_ca": "ca",
    "inbox_prefix": "inbox_prefix",
    "domain": "jetstream_domain",
    "tls_first": "tls_first",
}
"""Connection options of the command line, and their names in a context file."""


def context(arguments: list[str]) -> int:
    """The verb `context`."""
    return run_app(app, "context", arguments)


@app.command("add")
@app.command("create", hidden=True)
@app.command("save", hidden=True)
def add(
    name: str,
    description: Annotated[str, Option("--description")] = "",
    select: Annotated[bool, Option("--select", help="choose it at once")] = False,
) -> None:
    """Keep the connection options of this command line as the context NAME; one of that name is changed."""
    known = _document(name) if name in context_names(os.environ) else {}
    known.update({FIELDS[option]: value for option, value in current().given.items() if option in FIELDS})
    if description:
        known["description"] = description
    if known.get("url"):
        parse_server_urls(str(known["url"]))  # raises ConfigError for one that is none
    for field in ("creds", "cert", "key", "ca"):
        if known.get(field):
            known[field] = str(Path(str(known[field])).expanduser().absolute())
    write_context(name, known, os.environ)
    if select:
        choose_context(name, os.environ)
    _show(name)


@app.command("copy")
@app.command("cp", hidden=True)
def copy(source: str, name: str) -> None:
    """Make the context NAME out of SOURCE, and the connection options of this command line."""
    if name in context_names(os.environ):
        raise ConfigError(f"there is a context {name!r} already", value=name)
    made = _document(source)
    made.update({FIELDS[option]: value for option, value in current().given.items() if option in FIELDS})
    write_context(name, made, os.environ)
    _show(name)


@app.command("edit")
def edit(name: str) -> None:
    """Change a context in $VISUAL or $EDITOR; what it becomes has to be a context."""
    read_context(name, os.environ)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as directory:
        draft = Path(directory) / f"{name}.json"
        draft.touch(mode=0o600)
        draft.write_bytes(context_path(name, os.environ).read_bytes())
        try:
            subprocess.run([*shlex.split(editor), str(draft)], check=True)
            changed = draft.read_bytes()
            msgspec.json.decode(changed, type=NatsContext)
        except (OSError, subprocess.CalledProcessError, msgspec.MsgspecError) as error:
            raise ConfigError(f"nothing was changed: {type(error).__name__} in {editor!r}", value=name) from None
    write_context(name, json.loads(changed), os.environ)
    _show(name)


@app.command("ls")
@app.command("list", hidden=True)
def list_contexts(names: Annotated[bool, Option("--names", "-n", "--completion")] = False) -> None:
    """All contexts; the chosen one has a star."""
    known = context_names(os.environ)
    if current().json or names:
        current().show(known, lambda: known)
        return
    if not known:
        print("No known contexts")
        return
    chosen = chosen_context(os.environ)
    described = ((f"{each}*" if each == chosen else each, read_context(each, os.environ).description) for each in known)
    table("Known Contexts", ["Name", "Description"], described)


@app.command("select")
@app.command("switch", hidden=True)
@app.command("set", hidden=True)
def select(name: str) -> None:
    """Use the context NAME where none is named."""
    read_context(name, os.environ)
    choose_context(name, os.environ)
    _show(name)


@app.command("unselect")
def unselect() -> None:
    """Use no context where none is named."""
    choose_context("", os.environ)


@app.command("info")
@app.command("show", hidden=True)
def info(
    name: Annotated[str, Argument(help="without it, the chosen one")] = "",
    connect: Annotated[bool, Option("--connect", help="try it")] = False,
) -> None:
    """What a context says; secrets are not shown."""
    _show(name or _chosen(), connect=connect)


@app.command("validate")
@app.command("check", hidden=True)
def validate(
    name: Annotated[str, Argument(help="without it, all of them")] = "",
    connect: Annotated[bool, Option("--connect", help="try them")] = False,
) -> None:
    """Whether contexts can be read, and with `--connect` whether a server takes us."""
    failed = []
    for each in [name] if name else context_names(os.environ):
        try:
            if url := read_context(each, os.environ).url:
                parse_server_urls(url)
            if connect:
                current().with_context(each).connects()
        except Exception as error:  # noqa: BLE001 - each is tried, and the report says what is wrong with it
            failed.append(each)
            print(f"{each}: {error}")
        else:
            print(f"{each}: OK")
    if failed:
        raise ConfigError(f"{len(failed)} contexts do not work: {', '.join(failed)}", value=failed)


@app.command("rm")
@app.command("delete", hidden=True)
def remove(name: str, force: Force = False) -> None:
    """Delete a context."""
    read_context(name, os.environ)
    confirm(f"Really delete context {name}?", force=force)
    context_path(name, os.environ).unlink()
    if chosen_context(os.environ) == name:
        choose_context("", os.environ)


def _chosen() -> str:
    chosen = chosen_context(os.environ)
    if not chosen:
        raise ConfigError("no context is chosen", hint="headwater context select NAME")
    return chosen


def _document(name: str) -> dict[str, Any]:
    """The whole file, including fields unknown to us. Raises ConfigError."""
    read_context(name, os.environ)
    found = json.loads(context_path(name, os.environ).read_bytes())
    return dict(found)


def _show(name: str, *, connect: bool = False) -> None:
    given = msgspec.to_builtins(read_context(name, os.environ))
    shown = {key: "*********" if key in SECRETS and value else value for key, value in given.items()}
    lines = [f"NATS Configuration Context {name!r}", ""]
    lines += [f"  {key.replace('_', ' ').title():>20}: {value}" for key, value in shown.items() if value]
    lines += [f"  {'Path':>20}: {context_path(name, os.environ)}"]
    if connect:
        current().with_context(name).connects()
        lines += [f"  {'Connection':>20}: OK"]
    current().show({"name": name, **shown}, lambda: lines)
