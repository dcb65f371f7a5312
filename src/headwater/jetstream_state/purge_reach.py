"""Which consumers a purge moves, and how far: the rules of nats-server.

    the purge has no subject                     all of them, to the first message that is left
    it takes all that the consumer delivers      to the first message left of the purge's subject; behind the last, if none
    it takes a part of that                      to the first message that is left
    it takes nothing of that, or the two         not at all
    overlap without one being the wider

One difference: with several filters of which only some are within the purge's subject, nats-server moves the consumer as in
the second line, past messages of the others, which then are never delivered. Here that is the third line.
"""

from typing import NamedTuple

from headwater.jetstream_state.subject_table import SubjectFilter
from headwater.model.subject import is_within


class PurgeReach(NamedTuple):
    """A purge that is done. `wanted`: its subject, None for all; `first`: the sequence of the stream's first message;
    `first_matching`: of the first one that is left of `wanted`, or behind the last."""

    wanted: SubjectFilter | None
    first: int
    first_matching: int

    def start(self, delivers: SubjectFilter | None) -> int:
        """The sequence below which nothing is left for a consumer with this filter; 0: it stays where it is."""
        if self.wanted is None or delivers is None:
            return self.first
        purged = self.wanted.patterns
        if all(any(is_within(mine, gone) for gone in purged) for mine in delivers.patterns):
            return self.first_matching
        pairs = [(gone, mine) for gone in purged for mine in delivers.patterns]
        return self.first if any(is_within(gone, mine) or is_within(mine, gone) for gone, mine in pairs) else 0
