"""Plans: the part of forwarding that is the same for all messages with the same `Match` of peer interest, computed
once.

Forwarding one message then takes one random choice per queue group, and frames with prepared prefixes. If each group
has no local members and all its members are at one peer, there is no choice: the plan is `settled`, and a run of
messages goes to each peer in one copy.

A plan lives as long as its Match; any change of interest (`Sublist.generation`) invalidates both.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.cluster.frames import Frame, Target
    from cython.cimports.headwater.exchange.sublist import Match, Outlet, Subscription
else:
    from headwater.cluster.frames import Frame, Target
    from headwater.exchange.sublist import Match, Outlet, Subscription


class Choice:
    """A queue group at the peers. One of `entries` (one per member) gets each message; `targets` are their peers.

    `listed` is the frame text when this group is the only one, `name` the text appended after another group.
    """

    def __init__(self, queue: bytes, entries: list[Subscription], targets: list[Target]) -> None:
        self.queue = queue
        self.entries = entries
        self.targets = targets
        self.name = queue + b" "
        self.listed = b" | " + self.name
        self.alone = [queue]


class Plan:
    """`targets`: each peer's target. `limited`: some subscription has a message limit. `only`: for each peer with plain
    interest, the cluster of its leaf nodes if only they have that interest, otherwise b"".
    """

    def __init__(
        self, match: Match, targets: dict[Outlet, Target], origins: dict[Subscription, bytes] | None = None
    ) -> None:
        self.firsts: list[Subscription] = match.firsts()
        self.only: list[bytes] = [_only(match, each, origins) if origins else b"" for each in self.firsts]
        self.first_targets = [targets[cython.cast(Outlet, each.outlet)] for each in self.firsts]
        self.choices: list[Choice] = []
        self.limited = any(each.maximum != 0 for each in self.firsts)
        for queue, entries in zip(match.queues, match.groups, strict=True):
            self.choices.append(Choice(queue, entries, [targets[cython.cast(Outlet, each.outlet)] for each in entries]))
            self.limited = self.limited or any(each.maximum != 0 for each in entries)
        self.settled: list[Frame] | None = None if self.limited else self._settle()
        # Whether the frames hold nothing but a message: no tokens, no groups.
        self.bare = (
            self.settled is not None and all(not target.in_v1 for target in self.first_targets) and not self.choices
        )

    def _settle(self) -> "list[Frame] | None":
        """The frames, if they are the same for every message; otherwise None."""
        choice: Choice
        target: Target
        frames: list[Frame] = []
        listed: dict[Target, bytes] = {}
        for subscription, target in zip(self.firsts, self.first_targets, strict=True):
            if target.in_v1:
                frames.append(Frame(target, subscription, b""))
            else:
                listed[target] = b""
        for choice in self.choices:
            target = choice.targets[0]
            if len(choice.entries) > 1 and (target.in_v1 or any(other is not target for other in choice.targets)):
                return None
            if target.in_v1:
                frames.append(Frame(target, choice.entries[0], b""))
            else:
                before = listed.get(target, b"")
                listed[target] = before + choice.name if before else choice.listed
        return frames + [Frame(target, None, queues) for target, queues in listed.items()]


def _only(match: Match, first: Subscription, origins: dict[Subscription, bytes]) -> bytes:
    found = {origins.get(each, b"") for each in match.plain if each.outlet is first.outlet}
    return found.pop() if len(found) == 1 else b""
