"""Changes of the catalog: one at a time, on disk before they are answered, undone when they cannot be written."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from headwater.iggy.catalog import Catalog, decode
from headwater.iggy_wire.error_numbers import refusal


class CatalogChanges:
    """`save(document)` makes a document durable; `undone` is called when `catalog` is another object after a failure;
    `note` reports an event to operators."""

    def __init__(
        self, save: Callable[[bytes], Awaitable[None]], undone: Callable[[], None], note: Callable[..., None]
    ) -> None:
        self.catalog = Catalog()
        self.generation = 0  # how often the catalog has changed (`routes`)
        self.on_changed: Callable[[], None] | None = None  # called soon after each of these changes
        self._save = save
        self._undone = undone
        self._note = note
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def change(self) -> AsyncIterator[Catalog]:
        """Alter the catalog inside; it is durable when the block ends. Undone when the block, or the disk, refuses."""
        async with self._turn:
            before = self.catalog.encode()
            try:
                yield self.catalog
                await self._save(self.catalog.encode())
            except BaseException as error:
                self._undo(before)
                if isinstance(error, OSError):
                    self._note("write_refused", face="iggy", topic="", reason=f"catalog not saved: {error.strerror}")
                    raise refusal("io_error", f"the change could not be made durable: {error}") from error
                raise
            finally:
                self.generation += 1
                if self.on_changed is not None:
                    asyncio.get_running_loop().call_soon(self.on_changed)

    @property
    def in_progress(self) -> bool:
        """Whether a `change` is in progress, so that nothing found in the catalog now may be kept for later."""
        return self._turn.locked()

    def _undo(self, document: bytes) -> None:
        uid, user = self.catalog.next_uid, self.catalog.next_user
        self.catalog = decode(document)
        self.catalog.next_uid, self.catalog.next_user = uid, user
        self._undone()
