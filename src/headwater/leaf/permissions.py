"""What may cross a connection of a leaf node, in one direction. Pure.

    lists of the hub's user, of `deny_imports` and `deny_exports`, of the other side's INFO or CONNECT
    and what never crosses: the API of JetStream under its own name, and the stores behind it

A message crosses when every list lets it. Interest is announced when some message that it could bring might cross: a
literal subject is asked about as a message would be, and of one with wildcards only what no message could meet is left out.
What tells of loops and gateways is exempt.

Why JetStream stays: both sides may have one, and a client asks `$JS.API` of the one it is connected to. What is meant for
the other side is asked under its domain, `$JS.<domain>.API`. Source: nats-server 2.15.1.
"""

from collections.abc import Iterable, Sequence

from headwater.exchange.access_options import SubjectRules
from headwater.exchange.auth.permissions import SubjectSet
from headwater.model.subject import is_literal
from headwater.wire.peer_documents import SubjectLists

NEVER = (b"$JS.API.>", b"$KV.>", b"$OBJ.>")
NEVER_OF_SYSTEM = (b"$JSC.>", b"$NRG.>")
_EXEMPT = (b"$LDS.", b"_GR_.", b"$GR.")
REMEMBERED = 1024  # subjects whose answer is kept


class Crossing:
    """One direction. `denied` never crosses; each of `rules` (None: lets everything) has to let it, too."""

    def __init__(self, denied: Iterable[bytes], rules: Sequence[SubjectRules | None] = ()) -> None:
        self._denied = SubjectSet([*denied, *(each for rule in rules if rule for each in encoded(rule.deny))])
        self._allowed = [SubjectSet(encoded(rule.allow)) for rule in rules if rule and rule.allow is not None]
        # Whether only subjects with a `$` in front have to be asked about.
        self.is_open = not self._allowed and all(each.startswith(b"$") for each in self._denied.patterns)
        self._known: dict[bytes, bool] = {}

    def has(self, subject: bytes) -> bool:
        """Whether a message on the literal `subject` crosses."""
        known = self._known.get(subject)
        if known is None:
            known = subject.startswith(_EXEMPT) or (
                all(each.has(subject) for each in self._allowed) and not self._denied.has(subject)
            )
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[subject] = known
        return known

    def lets(self, pattern: bytes) -> bool:
        """Whether interest in `pattern` is worth announcing."""
        if is_literal(pattern):
            return self.has(pattern)
        if pattern.startswith(_EXEMPT):
            return True
        return all(each.touches(pattern) for each in self._allowed) and not self._denied.covers(pattern)


def never(own_domain: str, *, system: bool) -> tuple[bytes, ...]:
    """What crosses in no direction; and towards the other side, what is asked of our own domain."""
    own = (f"$JS.{own_domain}.API.>".encode(),) if own_domain else ()
    return (*NEVER, *(NEVER_OF_SYSTEM if system else ()), *own)


def encoded(subjects: Iterable[str]) -> list[bytes]:
    """Subjects as they travel."""
    return [subject.encode("utf-8", "surrogateescape") for subject in subjects]


def rules_of(lists: SubjectLists | None) -> SubjectRules | None:
    """What the other side has said in its INFO."""
    return SubjectRules(allow=lists.allow or None, deny=lists.deny) if lists is not None else None


def lists_of(rules: SubjectRules | None) -> SubjectLists | None:
    """The same for ours."""
    return SubjectLists(allow=rules.allow or (), deny=rules.deny) if rules is not None else None


def without_queues(rules: SubjectRules | None) -> SubjectRules | None:
    """Entries for a queue group count for its subject: what crosses has no group yet."""
    if rules is None:
        return None
    allow = None if rules.allow is None else tuple(dict.fromkeys(entry.split()[0] for entry in rules.allow))
    return SubjectRules(allow=allow, deny=tuple(entry for entry in rules.deny if len(entry.split()) == 1))
