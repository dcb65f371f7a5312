"""`import` and `export` of the cluster's permissions, prepared for look-ups. Pure.

    imports   the local clients' subscriptions that are announced to peers, and so the messages that peers send us
    exports   the peers' subscriptions that are accepted, and so the messages that we send; others are ignored

A subscription is allowed if every subject that it matches is allowed. One that is wider than a denial is accepted, and
messages on denied subjects are not forwarded. `imports` does not filter messages from a peer, as in nats-server: a peer
sends only messages that match our announced interest.

INFO announces the rules. A peer reacts to one change of them: if we export more, it announces its interest again.
"""

from headwater.authorization.permissions import SubjectSet
from headwater.model.subject import encode_subjects
from headwater.options.access import SubjectRules
from headwater.wire.peer_documents import SubjectLists


class Filter:
    """The permissions for one direction. `rules` None allows everything."""

    def __init__(self, rules: SubjectRules | None) -> None:
        self._rules = rules
        self._allowed = (
            SubjectSet(encode_subjects(rules.allow)) if rules is not None and rules.allow is not None else None
        )
        self._denied = SubjectSet(encode_subjects(rules.deny) if rules is not None else ())

    def lets(self, pattern: bytes) -> bool:
        """Whether a subscription to `pattern` is allowed."""
        if self._allowed is not None and not self._allowed.covers(pattern):
            return False
        return not self._denied.covers(pattern)

    @property
    def denied(self) -> SubjectSet | None:
        """The subjects that even an allowed subscription must not get; None if there are none."""
        return self._denied or None

    def announced(self) -> SubjectLists | None:
        """The rules in the form of INFO."""
        rules = self._rules
        return None if rules is None else SubjectLists(allow=tuple(rules.allow or ()), deny=tuple(rules.deny))
