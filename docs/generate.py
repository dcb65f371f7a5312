"""Generates the parts of the documents that derive from the code. Run it after a change; `--check` (in CI) fails if any
part is outdated.

The code is the product's and, for the table of crossings, the tests' `tests/crossings/table.py`, which imports nothing. The
`sync_types.py` of both clients are generated as whole files, as `docs/sync_types.py` explains. The tables of scale.md are
computed from benchmarks/RESULTS.md.

A generated part is between two comment lines, `<!-- generated: NAME -->` and `<!-- end of generated -->`; the prose around
it is written by hand. NAME is a key of PARTS.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from string import ascii_lowercase

import sync_types

from headwater import errors
from headwater.model.header_mapping import LOSSES, MAPPING
from headwater.server.refusals import api_verbs
from headwater.wire.verbs import LAW, Phase, Sender

DOCS = Path(__file__).resolve().parent
sys.path.append(str(DOCS.parent / "tests"))  # for `crossings` and `support.nats_py_walk`
sys.path.append(str(DOCS.parent / "benchmarks"))  # for `scale_model`
PART = re.compile(r"(?<=<!-- generated: )(\w+)( -->\n)(.*?)(?=<!-- end of generated -->)", re.DOTALL)


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def law() -> str:
    """The table of the protocol: which verbs each side may send in each phase."""
    rows = [
        [sender.value, phase.value, f"`{f'{verb.value.decode()} {rule.arguments}'.strip()}`", rule.meaning]
        for (sender, phase, verb), rule in LAW.items()
        if sender is not Sender.PEER
    ]
    return table(["sender", "phase", "op", "meaning"], rows)


def route_law() -> str:
    """The same for routes; an op that both dialects have is listed once."""
    dialects: dict[tuple[str, str], list[str]] = {}
    for (sender, phase, verb), rule in LAW.items():
        if sender is Sender.PEER and phase is not Phase.UNDECIDED:
            op = f"`{f'{verb.value.decode()} {rule.arguments}'.strip()}`"
            dialects.setdefault((op, rule.meaning), []).append(phase.value)
    return table(["dialect", "op", "meaning"], [[", ".join(names), *row] for row, names in dialects.items()])


def error_tree() -> str:
    """Every exception, parents before children."""
    rows = []
    for error, depth in tree(errors.HeadwaterError, 0):
        builtins = [
            base.__name__ for base in error.__bases__ if base.__module__ == "builtins" and base is not Exception
        ]
        meaning = " ".join((error.__doc__ or "").split("\n\n")[0].split())
        name = "&nbsp;&nbsp;" * depth + f"`{error.__name__}`"
        rows.append([name, ", ".join(builtins), error.fault, "yes" if error.retriable else "no", meaning])
    return table(["exception", "is also a", "whose fault", "retry helps", "meaning"], rows)


def tree(error: type[errors.HeadwaterError], depth: int) -> list[tuple[type[errors.HeadwaterError], int]]:
    found = [(error, depth)]
    for child in error.__subclasses__():
        if child.__module__ == errors.__name__:
            found += tree(child, depth + 1)
    return found


def nats_py() -> str:
    """The fate of nats-py's names and arguments, from the walk that a test makes over them."""
    from support.nats_py_walk import walk

    verdicts = list(walk())
    same: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.kept == "same":
            same.setdefault(verdict.kind, []).append(f"`{verdict.name}`")
    alike = table(["of", "the same"], [[f"`{kind}`", ", ".join(names)] for kind, names in same.items()])
    rows = [
        [f"`{verdict.kind}`", f"`{verdict.name}`", verdict.kept, verdict.here]
        for verdict in verdicts
        if verdict.kept != "same"
    ]
    return f"{alike}\n{table(['of', 'nats-py', 'verdict', 'here'], rows)}"


def decisions() -> str:
    """The index of the ADRs, from their own headings."""
    rows = []
    for path in sorted((DOCS / "adr").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        title = text.splitlines()[0].removeprefix("# ")
        fields = dict(re.findall(r"^\| *(Date|Status|Tags) *\| *(.*?) *\|$", text, re.MULTILINE))
        rows.append([f"[{title}]({path.name})", fields["Status"], fields["Date"], fields["Tags"]])
    return table(["decision", "status", "date", "tags"], rows)


def header_mapping() -> str:
    """The terms for the same concept in NATS, Iggy and CloudEvents."""
    return table(["what", "NATS header", "Iggy typed header", "CloudEvents"], [list(row) for row in MAPPING])


def header_losses() -> str:
    """What the mapping of headers loses."""
    return table(["direction", "what", "what becomes of it"], [list(loss) for loss in LOSSES])


def config_fields() -> str:
    """Every field of a configuration file, block by block."""
    from headwater.server.config.schema import BLOCKS

    parts = []
    for block in BLOCKS:
        rows = [
            [", ".join(f"`{name}`" for name in field.names), field.support.value, field.meaning]
            for field in block.fields
        ]
        parts.append(
            f"### {f'`{block.title}`' if block.title else 'Top level'}\n\n{table(['field', 'done', 'meaning'], rows)}"
        )
    return "\n".join(parts)


def serve_flags() -> str:
    """Every flag of `headwater serve`."""
    from headwater.serving.serve_flags import GROUPS

    rows = []
    for title, flags in GROUPS.items():
        for flag in flags:
            names = ", ".join(f"`{'-' if len(name) < 3 else '--'}{name}`" for name in flag.names)
            rows.append([title, names, flag.value, flag.meaning])
    return table(["about", "flag", "takes", "meaning"], rows)


def monitoring_omissions() -> str:
    """The fields of nats-server's pages that ours lack."""
    from headwater.monitoring import connz, interest, jsz, routez, varz

    pages = {
        "/varz": varz.OMITTED,
        "/connz": connz.OMITTED,
        "/subsz, /accountz": interest.OMITTED,
        "/jsz": jsz.OMITTED,
        "/routez": routez.OMITTED,
    }
    return table(
        ["page", "field", "why it is not there"],
        [[page, f"`{name}`", reason] for page, omitted in pages.items() for name, reason in omitted.items()],
    )


def reloadable() -> str:
    """The settings that SIGHUP may change."""
    from headwater.server.config.reload import RELOADABLE, USERS

    names = ", ".join(f"`{name}`" for name in sorted(RELOADABLE | USERS))
    return f"{names}, the log and the pid file.\n"


def jetstream_api() -> str:
    """The verbs of the JetStream API, from the routes that serve them."""
    rows = [[f"`$JS.API.{verb}`", kind] for verb, kind in api_verbs()]
    return table(["request", "answer"], rows)


def crossings() -> str:
    """Every way in combined with every way out, by place, and the reasons for missing combinations."""
    from crossings.table import PLACES, WAYS_IN, WAYS_OUT, Cell, failing, impossible

    letters: dict[str, str] = {}  # reason -> sign
    numbers: dict[str, str] = {}

    def sign(cell: Cell) -> str:
        if reason := impossible(cell):
            return letters.setdefault(reason, ascii_lowercase[len(letters)])
        if reason := failing(cell):
            return numbers.setdefault(reason, f"**{len(numbers) + 1}**")
        return "✓"

    parts = []
    for place in PLACES:
        rows = [[way.title, *(sign(Cell(way, out, place)) for out in WAYS_OUT)] for way in WAYS_IN]
        head = ["in, out", *(out.title for out in WAYS_OUT)]
        parts.append(f"## {place.title}\n\n{table(head, rows)}")
    reasons = [[mark, reason] for reason, mark in (letters | numbers).items()]
    return "\n".join([*parts, f"## Reasons\n\n{table(['sign', 'reason'], reasons)}"])


def connection_limits() -> str:
    """Every listener with every limit: the default, and the setting that changes it."""
    from headwater.net.limits import CONFIGURABLE, DEFAULTS, ELSEWHERE

    shown = {"login_seconds": "{:g} s", "login_bytes": "{:,} bytes", "waiting_bytes": "{:,} bytes"}
    names = list(dict(DEFAULTS["clients"].items()))

    def cell(listener: str, name: str, value: float) -> str:
        text = shown.get(name, "{:,}").format(value) if value else "none"
        if name == "requests_per_turn" and not value:
            text = "one read"
        setting = ELSEWHERE.get((listener, name), "")
        if name in CONFIGURABLE[listener]:
            return f"**{text}**"
        return f"{text} ({setting})" if setting else text

    rows = [
        [f"`{listener}`", *(cell(listener, name, value) for name, value in limits.items())]
        for listener, limits in DEFAULTS.items()
    ]
    return table(["listener", *(f"`{name}`" for name in names)], rows)


def scale_costs() -> str:
    """What one of each takes, as measured."""
    import scale_model

    return scale_model.cost_table()


def scale_loads() -> str:
    """What many clients need."""
    import scale_model

    return scale_model.load_table()


def scale_most() -> str:
    """Where a process and where a machine ends."""
    import scale_model

    return scale_model.most_table()


def scale_rest() -> str:
    """What clients take beside their messages."""
    import scale_model

    return scale_model.rest_table()


PARTS: dict[str, Callable[[], str]] = {
    "law": law,
    "errors": error_tree,
    "decisions": decisions,
    "jetstream_api": jetstream_api,
    "header_mapping": header_mapping,
    "header_losses": header_losses,
    "config_fields": config_fields,
    "serve_flags": serve_flags,
    "nats_py": nats_py,
    "monitoring_omissions": monitoring_omissions,
    "reloadable": reloadable,
    "route_law": route_law,
    "crossings": crossings,
    "connection_limits": connection_limits,
    "scale_costs": scale_costs,
    "scale_loads": scale_loads,
    "scale_most": scale_most,
    "scale_rest": scale_rest,
}


def outdated(write: bool) -> list[str]:
    """The documents whose generated parts differ from the code; with `write` they are updated."""
    late = []
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        fresh = PART.sub(lambda part: f"{part[1]}{part[2]}\n{PARTS[part[1]]()}\n", text)
        if fresh != text:
            late.append(str(path.relative_to(DOCS.parent)))
            if write:
                path.write_text(fresh, encoding="utf-8")
    return late + [str(path.relative_to(DOCS.parent)) for path in sync_types.outdated(write)]


def main(arguments: list[str]) -> int:
    check = arguments == ["--check"]
    late = outdated(write=not check)
    for name in late:
        print(f"{name}: {'out of date; run ./hw check --fix' if check else 'written'}")
    return int(check and bool(late))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
