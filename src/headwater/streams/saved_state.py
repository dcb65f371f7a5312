"""The log's state on disk, and the bounds within which the writer need not save it again.

No offset is used unless a durable state has reserved it, and no segment unless the state names it: so after a crash an
offset is never used twice, and a newest segment that is gone is noticed. Where nothing is synced a power loss may take the
newest segment, and the state does not name it.
"""

from dataclasses import replace

from headwater.durable_files import documents
from headwater.durable_files.files import Files
from headwater.streams.log_state import RESERVATION, LogState
from headwater.streams.ownership import STATE_DOCUMENT


class SavedState:
    """`state`: as saved, with the segments found or sealed since. `names_segments`: whether those are saved, too.
    `never_synced`: that is the log's sync policy."""

    def __init__(self, files: Files, directory: str, state: LogState, *, never_synced: bool = False) -> None:
        self.state = state
        # Opening found the segments; the state on the disk may be from before one was rewritten.
        self.names_segments = False
        self._never_synced = never_synced
        self._files = files
        self._path = f"{directory}/{STATE_DOCUMENT}"
        self._free_end = 0  # offsets below it may be used: as long as the state names the active segment and no index

    def reserve(self, end_offset: int, active_base: int, marks_are_synced: bool) -> None:
        """Before offsets below `end_offset` are written to the segment `active_base`. Raises OSError."""
        if end_offset <= self._free_end:
            return
        state = self.state
        if end_offset > state.reserved_end:
            reserved_end = end_offset + RESERVATION
            self.save(
                replace(
                    state,
                    active_base=active_base,
                    reserved_end=reserved_end,
                    marks_are_synced=marks_are_synced,
                    index_crc=0,
                    closed=False,
                )
            )
        elif (active_base != state.active_base and not self._never_synced) or state.index_crc or state.closed:
            self.save(replace(state, active_base=active_base, index_crc=0, closed=False))
        self._free_end = self.state.reserved_end

    def save(self, state: LogState) -> None:
        """Durable once this returns. Raises OSError."""
        self._free_end = 0
        documents.save(self._files, self._path, state.encode(), state.identity)
        self.state = state
        self.names_segments = True

    def note(self, state: LogState) -> None:
        """Replace one copy, durable when the system writes it back; a crash may bring back the state from before. Raises
        OSError."""
        self._free_end = 0
        documents.write_over(self._files, self._path, state.encode(), state.identity)
        self.state = state

    def seal(self, base_offset: int, generation_and_size: tuple[int, int]) -> None:
        """The segment of `base_offset` is complete; the next save says so. The one behind it is not named yet."""
        self.state = replace(self.state, sealed={**self.state.sealed, base_offset: generation_and_size})
        self.names_segments = False
        self._free_end = 0
