"""What is the same for all messages that the same peers want, worked out once for each `Match` of their interest.

A message is then an integer choice for each queue group, and frames whose beginnings are there already. Where no client here
is a member of a group, and one peer has all its members, nothing is to be chosen: the plan is `settled`, and a run of
messages goes to each peer with one copy.

A plan is as old as its Match; whatever changes interest (`Sublist.generation`) makes new ones.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.cluster.frames import Frame, Target
    from cython.cimports.headwater.exchange.sublist import Match, Outlet, Subscription
else:
    from headwater.cluster.frames import Frame, Target
    from headwater.exchange.sublist import Match, Outlet, Subscription


class Choice:
    """A queue group at the peers: of `entries`, one for each member, one gets a message; `targets` are their peers.

    `listed` is how a frame for this group alone names it, `name` what is put behind that of another.
    """

    def __init__(self, queue: bytes, entries: list[Subscription], targets: list[Target]) -> None:
        self.queue = queue
        self.entries = entries
        self.targets = targets
        self.name = queue + b" "
        self.listed = b" | " + self.name
        self.alone = [queue]


class Plan:
    """`targets`: where each peer is reached. `limited`: some subscription ends after so many messages."""

    def __init__(self, match: Match, targets: dict[Outlet, Target]) -> None:
        self.firsts: list[Subscription] = match.firsts()
        self.first_targets = [targets[cython.cast(Outlet, each.outlet)] for each in self.firsts]
        self.choices: list[Choice] = []
        self.limited = any(each.maximum != 0 for each in self.firsts)
        for queue, entries in zip(match.queues, match.groups, strict=True):
            self.choices.append(Choice(queue, entries, [targets[cython.cast(Outlet, each.outlet)] for each in entries]))
            self.limited = self.limited or any(each.maximum != 0 for each in entries)
        self.settled: list[Frame] | None = None if self.limited else self._settle()

    def _settle(self) -> "list[Frame] | None":
        """The frames of every message, when they are the same each time."""
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
