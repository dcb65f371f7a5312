"""`$JS.API.ACCOUNT.PURGE.<account>`, a request in the system account: every stream of an account is deleted, for good.

Answered at once, as nats-server does ("initiated"); what becomes of it is in the log. The account may be one that is no
longer configured, or whose JWT was deleted: its streams stay on disk until this request. A stream that was put
aside because it is damaged stays, and is named.
"""

import asyncio
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.jetstream_documents.answers import TYPE_PREFIX
from headwater.options.access import GLOBAL_ACCOUNT
from headwater.options.store_folders import store_directory
from headwater.server.system.documents import encode

if TYPE_CHECKING:
    from headwater.exchange.router import Router
    from headwater.monitoring.view import ObservedBroker

logger = logging.getLogger(__name__)

SUBJECT = b"$JS.API.ACCOUNT.PURGE."


class Purging:
    """Of one broker."""

    def __init__(self, broker: "ObservedBroker", router: "Router") -> None:
        self._broker = broker
        self._router = router
        self._tasks: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Delete no further."""
        for task in self._tasks:
            task.cancel()

    def answer(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        """Answer a request to `SUBJECT` and the name of an account."""
        name = subject[len(SUBJECT) :].decode("utf-8", "surrogateescape")
        task = asyncio.get_running_loop().create_task(self._purge(name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if reply:
            document = {"type": TYPE_PREFIX + "account_purge_response", "initiated": True}
            self._router.publish(reply, b"", b"", encode(document))
        return True

    async def _purge(self, name: str) -> None:
        service = self._broker.jetstreams.get(name)
        try:
            if service is None:
                if any(
                    one.name == name and one.options and one.options.jetstream for one in self._broker.accounts or ()
                ):
                    logger.error("account_purge_failed account=%s reason='its streams are being opened'", name)
                    return
                if name == GLOBAL_ACCOUNT:  # the folder is that of all accounts
                    reason = "its streams are in the store's own folder: enable JetStream for it, then purge it"
                    logger.error("account_purge_failed account=%s reason='%s'", name, reason)
                    return
                await self._remove_files(name)
                return
            streams = list(service.streams.values())
            for stream in streams:
                await service.registry.delete(stream)
            logger.warning("account_purged account=%s streams=%d", name, len(streams))
            for finding in service.registry.put_aside.values():
                logger.warning("account_purge_left account=%s path=%s", name, finding.path)
        except (HeadwaterError, OSError) as error:
            logger.error("account_purge_failed account=%s reason=%s", name, error)

    async def _remove_files(self, name: str) -> None:
        """Remove what is on disk of an account that has no streams here: these files are not open."""
        directory = Path(store_directory(self._broker.options.streams_dir, name))
        known = await asyncio.to_thread(directory.is_dir)
        if known:
            await asyncio.to_thread(shutil.rmtree, directory)
        logger.warning("account_purged account=%s on_disk=%s", name, str(known).lower())
