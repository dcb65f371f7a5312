"""`headwater config check FILE`: report all errors in a configuration file, without starting anything.

Certificates, keys and credentials are read; the packages required by its listeners and users are looked up; the paths of
the store, the log, the pid file and the ports file are checked for write access. Nothing is written. Not checked: ports,
host names, the contents of the store, and whether a missing store can be created. Fields without effect here are reported
as warnings. The exit status is 0 for a file that `headwater serve -c` accepts, else 1; with --strict warnings count as
errors.
"""

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from headwater.errors import ConfigError, EnvironmentProblem, HeadwaterError
from headwater.server.config.draft import ServerConfig
from headwater.server.config.schema import load
from headwater.serving.setup import read_file


def main(argv: list[str]) -> int:
    """The verb `config`."""
    parser = argparse.ArgumentParser(prog="headwater config", description="Configuration files.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="check")
    checker = verbs.add_parser("check", help="say what is wrong with a file", description="Check a configuration file.")
    checker.add_argument("file")
    checker.add_argument("--strict", action="store_true", help="warnings count as errors")
    arguments = parser.parse_args(argv)
    return check(arguments.file, strict=arguments.strict)


def check(path: str, strict: bool = False) -> int:
    """Check one file; messages go to stderr, one per line. Returns the exit status."""
    try:
        draft = load(path, read_file, os.environ)
        config: ServerConfig = draft.finish()
        try:
            would_start(config)
            would_write(config)
        except ConfigError as error:
            raise draft.placed(error) from error
    except HeadwaterError as error:
        print("\n".join(f"headwater: {line}" for line in str(error).splitlines()), file=sys.stderr)
        return 1
    for warning in config.warnings:
        print(f"headwater: warning: {warning}", file=sys.stderr)
    print(f"headwater: configuration file {path} is valid ({config.digest})", file=sys.stderr)
    return int(strict and bool(config.warnings))


def would_start(config: ServerConfig) -> None:
    """Do everything that a start does before it binds a port. Raises ConfigError for unusable certificates or users,
    EnvironmentProblem for a missing package."""
    from headwater.authorization.gate import Gate
    from headwater.net.listeners import tls_settings, websocket_links

    options = config.broker
    Gate(options)
    if options.tls is not None:
        tls_settings(options.tls)
    if options.websocket is not None:
        websocket_links(options.websocket, options.max_payload)
    for remote in options.leafnodes.remotes if options.leafnodes is not None else ():
        from headwater.leaf.credentials import check as check_credentials

        check_credentials(remote)
    if config.monitoring is not None:
        missing = [name for name in ("h11", "prometheus_client") if find_spec(name) is None]
        if missing:
            what = f"monitoring needs a package that is not installed: {', '.join(missing)}"
            raise EnvironmentProblem(what, value=missing, hint="pip install 'headwater[http]'")


def would_write(config: ServerConfig) -> None:
    """Raises ConfigError for a path that a start could not write to."""
    for what, path in (("log file", config.logging.file), ("pid_file", config.pid_file)):
        if path:
            place = Path(path)
            if place.is_dir() or not _is_writable(place if place.exists() else place.parent):
                raise ConfigError(f"the {what} {path} cannot be written", value=str(path))
    if config.ports_file_dir and not _is_writable(config.ports_file_dir):
        raise ConfigError(
            f"the ports_file_dir {config.ports_file_dir} cannot be written", value=str(config.ports_file_dir)
        )
    if config.broker.jetstream:
        store = Path(config.broker.store_dir).absolute()
        there = next(place for place in (store, *store.parents) if place.exists())
        if not there.is_dir() or (there == store and not _is_writable(store)):
            reason = f"{there} is no directory that can be written"
            raise ConfigError(f"the store_dir {store} cannot be used: {reason}", value=str(store))


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK)
