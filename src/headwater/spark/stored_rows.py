"""What earlier attempts at a batch stored, and which rows of another attempt are still to be published. Pure.

Rows with ids of their own are compared by id. Ids made by the sink are places (`<job>/<partition>/<row>`), and a place
means the same row only if the source gives the same rows in the same order and in as many partitions. So the row stored at
a place is compared with the present one; stored rows whose place no longer exists are detected, and so are rows stored at a
place of another partition. Each of these ends the query: publishing such a row would duplicate it, and skipping it would
lose it.
"""

from collections.abc import Iterable
from hashlib import blake2b

from headwater.errors import ConfigError

WAY_OUT = (
    "give the rows a column msg_id that is the same each time (of a stream: concat(stream, '/', seq) AS msg_id), or choose "
    "delivery=at-least-once until the batch is through"
)


_SEVERAL = -1


def digest(subject: bytes, payload: bytes) -> bytes:
    """The digest by which rows are compared: 16 bytes; a million stored rows need about 200 MB."""
    return blake2b(b"%d %b%b" % (len(subject), subject, payload), digest_size=16).digest()


class StoredRows:
    """The rows found in the streams. `job` is the prefix of ids of this batch that are places: `<job>/<partition>/<row>`."""

    def __init__(self, job: bytes) -> None:
        self._prefix = job + b"/"
        self._places: dict[int, dict[int, bytes]] = {}
        self._partition_of: dict[bytes, int] = {}
        self._ids: set[bytes] = set()

    def add(self, message_id: bytes, subject: bytes, payload: bytes) -> None:
        """Record a stored message."""
        self._ids.add(message_id)
        if message_id.startswith(self._prefix):
            partition, _, row = message_id[len(self._prefix) :].partition(b"/")
            if partition.isdigit() and row.isdigit():
                made = self._places.setdefault(int(partition), {})[int(row)] = digest(subject, payload)
                if self._partition_of.setdefault(made, int(partition)) != int(partition):
                    self._partition_of[made] = _SEVERAL

    def lacks(self, message_id: bytes) -> bool:
        """Whether a row with an id of its own is still to be published; always true without an id."""
        return not message_id or message_id not in self._ids

    def left(self, partition: int, first: int, rows: Iterable[tuple[bytes, bytes]]) -> list[bool]:
        """Whether each of the rows (subject, payload) is still to be published; their places begin at `first`.

        Raises ConfigError for a row that differs from the one stored at its place, and for one that was stored at a place
        of another partition. Identical rows in several partitions may be mistaken for the latter.
        """
        own = self._places.get(partition, {})
        answers = []
        for place, (subject, payload) in enumerate(rows, first):
            made, stored = digest(subject, payload), own.get(place)
            if stored is not None and stored != made:
                raise ConfigError(
                    f"row {place} of partition {partition} in batch {self._job} is another one than the first time: the "
                    "rows, their order or the number of partitions are not the same again",
                    value=place,
                    hint=WAY_OUT,
                )
            if stored is None and self._partition_of.get(made, partition) != partition:
                raise ConfigError(
                    f"row {place} of partition {partition} in batch {self._job} was stored as a row of another partition "
                    "by an earlier attempt: the number of partitions, or the order of the rows, is another",
                    value=place,
                    hint=WAY_OUT,
                )
            answers.append(stored is None)
        return answers

    def check_end(self, partition: int, rows: int) -> None:
        """Raise ConfigError when an earlier attempt stored more rows of a partition than the present `rows`."""
        beyond = [place for place in self._places.get(partition, {}) if place >= rows]
        if beyond:
            raise ConfigError(
                f"partition {partition} of batch {self._job} has {rows} rows, and an earlier attempt stored its row "
                f"{max(beyond)}: rows have vanished from the source, or the number of partitions is another",
                value=max(beyond),
                limit=rows,
                hint=WAY_OUT,
            )

    @property
    def _job(self) -> str:
        return self._prefix[:-1].decode()
