"""Decides which subjects may cross a leaf node connection, in one direction. Pure.

    sources   the hub's user, `deny_imports` and `deny_exports`, the other side's INFO or CONNECT
    never     the JetStream API under its own name, and the subjects of its stores

A message crosses if every list allows it. Interest is announced if some message that matches it might cross: a literal
subject is judged like a message, a wildcard is left out only if no message that matches it could cross. Subjects for
loop detection and gateways are exempt.

The JetStream API does not cross because both sides may have JetStream: `$JS.API` is the API of the server that the
client is connected to; the other side's has its domain in the name, `$JS.<domain>.API`. Source: nats-server 2.15.1.
"""

from collections.abc import Iterable, Sequence

from headwater.authorization.permissions import SubjectSet
from headwater.model.subject import encode_subjects, is_literal
from headwater.model.thinning import thin_out
from headwater.options.access import SubjectRules
from headwater.wire.peer_documents import SubjectLists

NEVER = (b"$JS.API.>", b"$KV.>", b"$OBJ.>")
NEVER_OF_SYSTEM = (b"$JSC.>", b"$NRG.>")
_EXEMPT = (b"$LDS.", b"_GR_.", b"$GR.")
REMEMBERED = 1024  # subjects with a cached result


class Crossing:
    """The permissions for one direction. Subjects in `denied` never cross; the others must be allowed by each of
    `rules` (None allows everything).
    """

    def __init__(self, denied: Iterable[bytes], rules: Sequence[SubjectRules | None] = ()) -> None:
        self._denied = SubjectSet([*denied, *(each for rule in rules if rule for each in encode_subjects(rule.deny))])
        self._allowed = [SubjectSet(encode_subjects(rule.allow)) for rule in rules if rule and rule.allow is not None]
        # Whether only subjects that begin with `$` need a check.
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
                thin_out(self._known)
            self._known[subject] = known
        return known

    def lets(self, pattern: bytes) -> bool:
        """Whether to announce interest in `pattern`."""
        if is_literal(pattern):
            return self.has(pattern)
        if pattern.startswith(_EXEMPT):
            return True
        return all(each.touches(pattern) for each in self._allowed) and not self._denied.covers(pattern)


def never(own_domain: str, *, system: bool) -> tuple[bytes, ...]:
    """The subjects that never cross; `own_domain`, for the direction to the other side, adds our own domain's API."""
    own = (f"$JS.{own_domain}.API.>".encode(),) if own_domain else ()
    return (*NEVER, *(NEVER_OF_SYSTEM if system else ()), *own)


def rules_of(lists: SubjectLists | None) -> SubjectRules | None:
    """The rules in the other side's INFO."""
    return SubjectRules(allow=lists.allow or None, deny=lists.deny) if lists is not None else None


def lists_of(rules: SubjectRules | None) -> SubjectLists | None:
    """Our rules in the form of INFO."""
    return SubjectLists(allow=rules.allow or (), deny=rules.deny) if rules is not None else None


def without_queues(rules: SubjectRules | None) -> SubjectRules | None:
    """Rules in which an allow entry for a queue group allows its whole subject, because a crossing message has no group
    yet; deny entries for groups are left out.
    """
    if rules is None:
        return None
    allow = None if rules.allow is None else tuple(dict.fromkeys(entry.split()[0] for entry in rules.allow))
    return SubjectRules(allow=allow, deny=tuple(entry for entry in rules.deny if len(entry.split()) == 1))
