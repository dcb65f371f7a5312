"""Consumer groups: which member reads which partitions. Pure; members are the numbers of connections.

Partition i belongs to member i modulo their number, in the order in which they joined; every change of members or of
the number of partitions begins a new generation. A client of era V or later requests its partitions (sync) and names
one in each poll; a poll for a partition of another member makes it sync again. An older client names none, and polls
its partitions in turn.

Messages polled but not committed when the generation changes are polled again by the next owner of the partition: at least
once, never skipped.
"""


class Group:
    """The members of one group now."""

    def __init__(self, partitions: int) -> None:
        self.members: list[int] = []
        self.generation = 0
        self.partitions = partitions
        self._turns: dict[int, int] = {}

    def join(self, member: int) -> None:
        """Add a member; joining again changes nothing."""
        if member not in self.members:
            self.members.append(member)
            self._change()

    def leave(self, member: int) -> bool:
        """Remove a member; False when it was not in the group."""
        if member not in self.members:
            return False
        self.members.remove(member)
        self._turns.pop(member, None)
        self._change()
        return True

    def resize(self, partitions: int) -> None:
        """The topic's number of partitions has changed."""
        if partitions != self.partitions:
            self.partitions = partitions
            self._change()

    def of_member(self, member: int) -> list[int]:
        """The positions of the member's partitions; empty for a client outside the group."""
        if member not in self.members:
            return []
        return list(range(self.members.index(member), self.partitions, len(self.members)))

    def owns(self, member: int, partition: int) -> bool:
        """Whether the partition at this position belongs to the member."""
        return bool(self.members) and partition < self.partitions and self.owner(partition) == member

    def owner(self, partition: int) -> int:
        return self.members[partition % len(self.members)]

    def next_of(self, member: int) -> int | None:
        """The next partition in turn, for a member that names none."""
        own = self.of_member(member)
        if not own:
            return None
        turn = self._turns.get(member, 0)
        self._turns[member] = turn + 1
        return own[turn % len(own)]

    def _change(self) -> None:
        self.generation += 1
