"""A broker that is one of several processes which are one server (`serve --workers N`)."""

from headwater.errors import ConfigError
from headwater.model.record import Record


class WorkerOptions(Record):
    """Worker `number`, from 1, of `count`. `spread`: each has some of the streams, else the first has all."""

    number: int
    count: int
    spread: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise ConfigError(f"there is no worker {self.number} of {self.count}", value=self.number)
