"""`headwater completion bash|zsh|fish`: a script that completes verbs, their commands and options.

    headwater completion bash > ~/.local/share/bash-completion/completions/headwater
    headwater completion fish > ~/.config/fish/completions/headwater.fish
    headwater completion zsh >> ~/.zshrc

The script contains all words, taken from the same tables and signatures as the help, so that TAB starts no Python. Generate
it again after an update.
"""

import sys
from importlib import import_module

from headwater.cli.commands import Command, Commands
from headwater.cli.connection_flags import WITH_VALUE, WITHOUT_VALUE

APPS = {
    "account": "nats_backup:account_app",
    "consumer": "nats_consumers:consumer_app",
    "context": "nats_context:app",
    "events": "nats_watch:events_app",
    "kv": "nats_kv:app",
    "object": "nats_object:app",
    "pub": "nats_messages:pub_app",
    "reply": "nats_messages:reply_app",
    "request": "nats_messages:request_app",
    "rtt": "nats_messages:rtt_app",
    "server": "nats_server:app",
    "service": "nats_service:app",
    "stream": "nats_streams:stream_app",
    "sub": "nats_messages:sub_app",
    "trace": "nats_trace:trace_app",
    "traffic": "nats_watch:traffic_app",
}
"""The modules with the commands of each verb; completions come from the signatures of their functions."""

BASH = """_headwater() {
  local cur=${COMP_WORDS[COMP_CWORD]} at=1 word verb= command=
  while [ $at -lt $COMP_CWORD ]; do
    word=${COMP_WORDS[$at]}
    case $word in
      @VALUED@) at=$((at + 1)) ;;
      -*) ;;
      *) if [ -z "$verb" ]; then verb=$word; elif [ -z "$command" ]; then command=$word; fi ;;
    esac
    at=$((at + 1))
  done
  local words="@VERBS@"
  case "$verb" in
    "") ;;
@CASES@
    *) words= ;;
  esac
  case $cur in -*) words="$words @FLAGS@" ;; esac
  COMPREPLY=( $(compgen -W "$words" -- "$cur") )
}
complete -o default -F _headwater headwater
"""


def main(arguments: list[str]) -> int:
    """The verb `completion`."""
    makers = {"bash": bash, "zsh": lambda: f"autoload -U +X bashcompinit && bashcompinit\n{bash()}", "fish": fish}
    if len(arguments) != 1 or arguments[0] not in makers:
        print("usage: headwater completion bash|zsh|fish", file=sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    print(makers[arguments[0]](), end="")
    return 0


def words() -> dict[str, dict[str, list[str]]]:
    """The commands of each verb with their options; a verb without commands has its options under an empty name."""
    from headwater.cli.main import VERBS

    found: dict[str, dict[str, list[str]]] = {verb: {} for verb in VERBS}
    for verb, place in APPS.items():
        module, _, name = place.partition(":")
        found[verb] = _commands(getattr(import_module(f"headwater.cli.{module}"), name))
    found["micro"] = found["service"]
    found["completion"] = {"bash": [], "zsh": [], "fish": []}
    found["config"] = {"check": []}
    found["log"] = {"inspect": [], "verify": [], "repair": []}
    return found


def _commands(app: Commands) -> dict[str, list[str]]:
    return {name: _options(app.commands[name]) for name in ("", *app.listed()) if name in app.commands}


def _options(command: Command | Commands) -> list[str]:
    return sorted({*(command.options() if isinstance(command, Command) else ()), "--help"})


def bash() -> str:
    """The script for bash."""
    cases = []
    for verb, commands in words().items():
        options = " ".join(
            f'    "{verb} {name}") words="{" ".join(found)}" ;;' for name, found in commands.items() if name
        )
        own = " ".join(commands.get("", [name for name in commands if name]))
        inner = "\n".join(
            f'        {name}) words="{" ".join(found)}" ;;' for name, found in commands.items() if name and found
        )
        chosen = f'case "$command" in\n        "") words="{own}" ;;\n{inner}\n        *) words= ;;\n      esac'
        cases.append(f"    {verb})\n      {chosen} ;;" if options else f'    {verb}) words="{own}" ;;')
    flags = " ".join([*WITH_VALUE, *WITHOUT_VALUE])
    made = BASH.replace("@VALUED@", "|".join(WITH_VALUE)).replace("@CASES@", "\n".join(cases))
    return made.replace("@VERBS@", " ".join(words())).replace("@FLAGS@", flags)


def fish() -> str:
    """The script for fish."""
    from headwater.cli.main import VERBS

    lines = ["complete -c headwater -f"]
    for verb, entry in VERBS.items():
        lines.append(f"complete -c headwater -n __fish_use_subcommand -a {verb} -d {_quoted(entry.meaning)}")
    for verb, commands in words().items():
        here = f"'__fish_seen_subcommand_from {verb}'"
        for name, options in commands.items():
            if name:
                lines.append(f"complete -c headwater -n {here} -a {name}")
            where = f"'__fish_seen_subcommand_from {verb}; and __fish_seen_subcommand_from {name}'" if name else here
            lines += [
                f"complete -c headwater -n {where} -l {option[2:]}" for option in options if option.startswith("--")
            ]
    lines += [f"complete -c headwater -l {flag[2:]} -r" for flag in WITH_VALUE if flag.startswith("--")]
    return "\n".join([*lines, "complete -c headwater -l json", ""])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
