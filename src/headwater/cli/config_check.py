"""`headwater config check FILE`: what is wrong with a configuration file, all of it, without starting anything.

Certificates and keys are read, and the packages are looked for that its listeners and users need. Not tried: ports, the
store. Also says which fields change nothing here. The exit status is 0 for a file that `headwater serve -c` takes, else 1;
with --strict a warning counts as well.
"""

import argparse
import os
import sys
from importlib.util import find_spec

from headwater.cli.serve_setup import read_file
from headwater.errors import EnvironmentProblem, HeadwaterError
from headwater.server.config.draft import ServerConfig
from headwater.server.config.schema import load


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
    """Check one file; remarks go to stderr, one a line. Returns the exit status."""
    try:
        draft = load(path, read_file, os.environ)
        config: ServerConfig = draft.finish()
        would_start(config)
    except HeadwaterError as error:
        print("\n".join(f"headwater: {line}" for line in str(error).splitlines()), file=sys.stderr)
        return 1
    for warning in config.warnings:
        print(f"headwater: warning: {warning}", file=sys.stderr)
    print(f"headwater: configuration file {path} is valid ({config.digest})", file=sys.stderr)
    return int(strict and bool(config.warnings))


def would_start(config: ServerConfig) -> None:
    """Do what a start does before it binds a port. Raises ConfigError for certificates and users that cannot be used,
    EnvironmentProblem for a package that is not installed."""
    from headwater.exchange.auth.gate import Gate
    from headwater.exchange.listeners import tls_settings, websocket_links

    options = config.broker
    Gate(options)
    if options.tls is not None:
        tls_settings(options.tls)
    if options.websocket is not None:
        websocket_links(options.websocket, options.max_payload)
    if config.monitoring is not None:
        missing = [name for name in ("h11", "prometheus_client") if find_spec(name) is None]
        if missing:
            what = f"monitoring needs a package that is not installed: {', '.join(missing)}"
            raise EnvironmentProblem(what, value=missing, hint="pip install 'headwater[http]'")
