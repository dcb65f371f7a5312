"""Decides what a user may publish and subscribe to, by subject.

    publish     the subject must match an allowed pattern and no denied one; else, where responses are allowed, it must
                be the reply subject of a message delivered to this client
    subscribe   every subject that the subscription can match must be allowed. One wider than a denial is accepted,
                and denied messages are not delivered
    queue       an entry "subject queue" holds for that queue group only; the group may have wildcards

All connections of a user share its `Rules`; each has its own `guard.Guard`, which caches their results and keeps reply
subjects. nats-server is laxer in two points: an allowed `a.*` lets a client subscribe to `a.>`, and an empty list of
allowed subjects allows everything.
"""

from collections.abc import Iterable

from headwater.model.subject import encode_subjects, is_literal, is_within, patterns_overlap
from headwater.model.subject_match import matches, matches_one
from headwater.options.access import Permissions, SubjectRules


class SubjectSet:
    """A set of patterns for looking up subjects; a literal pattern is found without comparing the others."""

    def __init__(self, patterns: Iterable[bytes]) -> None:
        self.patterns = tuple(patterns)
        self._exact = frozenset(self.patterns)
        self._wild = tuple(pattern for pattern in self.patterns if not is_literal(pattern))

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def has(self, subject: bytes) -> bool:
        """Whether a pattern of the set matches the literal `subject`."""
        return subject in self._exact or matches_one(self._wild, subject)

    def covers(self, pattern: bytes) -> bool:
        """Whether one pattern of the set matches every subject that `pattern` matches."""
        return pattern in self._exact or any(is_within(pattern, ours) for ours in self.patterns)

    def touches(self, pattern: bytes) -> bool:
        """Whether some subject matches both a pattern of the set and `pattern`."""
        return any(patterns_overlap(ours, pattern) for ours in self.patterns)


class SubscribeRules:
    """Patterns for all subscriptions, and patterns for one queue group, whose name may have wildcards."""

    def __init__(self, entries: Iterable[str]) -> None:
        plain: list[bytes] = []
        self._queued: list[tuple[bytes, bytes]] = []
        for entry in entries:
            subject, _, queue = entry.strip().partition(" ")
            if queue.strip():
                self._queued.append((subject.encode(), queue.strip().encode()))
            else:
                plain.append(subject.encode())
        self.plain = SubjectSet(plain)

    def __bool__(self) -> bool:
        return bool(self.plain or self._queued)

    def queues_for(self, subject: bytes) -> list[bytes]:
        """The queue groups of the entries that cover `subject`."""
        return [queue for pattern, queue in self._queued if is_within(subject, pattern)]

    def touches(self, subject: bytes, queue: bytes) -> bool:
        """Whether an entry matches some of the messages of a subscription."""
        return self.plain.touches(subject) or any(
            matches(group, queue) and patterns_overlap(pattern, subject) for pattern, group in self._queued if queue
        )

    def has(self, subject: bytes, queue: bytes) -> bool:
        """Whether an entry matches a message on the literal `subject`, delivered through `queue` (b"" for none)."""
        return self.plain.has(subject) or any(
            matches(group, queue) and matches(pattern, subject) for pattern, group in self._queued if queue
        )


class Rules:
    """A user's permissions, prepared for look-ups."""

    def __init__(self, permissions: Permissions) -> None:
        publish = permissions.publish
        if publish is None and permissions.responses is not None:
            publish = SubjectRules(allow=())
        subscribe = permissions.subscribe or SubjectRules()
        self.source = permissions
        self.publish_allow = (
            None if publish is None or publish.allow is None else SubjectSet(encode_subjects(publish.allow))
        )
        self.publish_deny = SubjectSet(encode_subjects(publish.deny if publish is not None else ()))
        self.subscribe_allow = None if subscribe.allow is None else SubscribeRules(subscribe.allow)
        self.subscribe_deny = SubscribeRules(subscribe.deny)
        self.responses = permissions.responses

    def may_publish(self, subject: bytes) -> bool:
        """Whether the lists allow publishing on the literal `subject`; responses are not considered."""
        if self.publish_allow is not None and not self.publish_allow.has(subject):
            return False
        return not self.publish_deny.has(subject)

    def may_subscribe(self, subject: bytes, queue: bytes) -> bool:
        """Whether a subscription is allowed; `queue` is b"" without a queue group."""
        allow, deny = self.subscribe_allow, self.subscribe_deny
        if allow is not None:
            groups = allow.queues_for(subject) if queue else []
            if groups:
                if not any(matches(group, queue) for group in groups):
                    return False
            elif not allow.plain.covers(subject):
                return False
        if deny.plain.covers(subject):
            return False
        return not (queue and any(matches(group, queue) for group in deny.queues_for(subject)))


def rules_of(permissions: Permissions | None) -> Rules | None:
    """The rules of these permissions; None if everything is allowed."""
    return None if permissions is None else Rules(permissions)
