"""Iggy's listeners as a part of the broker: `Broker(iggy=IggyOptions(...))`, and `headwater serve --iggy`.

    Iggy clients ─▶ Iggy ─┬─ topics of its own ─▶ `TopicStreams` ─▶ streams of JetStream
                          └─ the stream `nats` ◀─ `CapturedStreams` ◀─ streams of JetStream

Both directions are those of the global account; without JetStream there, Iggy has its own topics only. Its data is in the
folder `iggy` of the store directory. Where its options leave the sync policy or the certificate open, the broker's hold.

Where the streams are spread over workers, Iggy has its own topics at the first one, and neither face shows the other's.
Nothing here is imported by a broker that has no Iggy.
"""

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.iggy.credentials import ROOT
from headwater.iggy.face import Iggy, IggyOptions
from headwater.net.journal import Journal
from headwater.options.access import GLOBAL_ACCOUNT
from headwater.options.broker import BrokerOptions
from headwater.server.faces.captured_streams import CapturedStreams
from headwater.server.faces.topic_streams import TopicStreams

if TYPE_CHECKING:
    from headwater.jetstream.service import JetStream

logger = logging.getLogger(__name__)

WITHOUT_LOGIN = "seed", "seed_http"


def completed(options: IggyOptions, broker: BrokerOptions) -> IggyOptions:
    """The options with the broker's sync policy and certificate where they name none."""
    service, tls = options.service, broker.tls
    if service.sync is None:
        options = replace(options, service=replace(service, sync=broker.sync))
    if tls is not None and options.cert_file is None and options.key_file is None:
        options = replace(options, cert_file=tls.cert_file, key_file=tls.key_file)
    return replace(options, limits=broker.connection_limits)


class IggyFace:
    """The face of one broker. `jetstreams`: its JetStream services, by account.

    Raises EnvironmentProblem from `start` when an address or the directory cannot be used, ConfigError for a certificate
    that cannot.
    """

    def __init__(
        self,
        options: IggyOptions,
        broker: BrokerOptions,
        jetstreams: Mapping[str, "JetStream"],
        journal: Journal | None = None,
    ) -> None:
        self.options = completed(options, broker)
        self._jetstreams = jetstreams
        foreign = CapturedStreams(jetstreams, GLOBAL_ACCOUNT, broker.max_payload)
        self.iggy = Iggy(self.options, Path(broker.store_dir) / "iggy", foreign)
        if journal is not None:
            self.iggy.service.note = journal.note
        self._running = AsyncExitStack()
        self._expects_streams = broker.jetstream
        self._is_worker = broker.is_spread

    async def start(self) -> None:
        """Recover what is stored, listen, and show the topics as streams."""
        try:
            await self._running.enter_async_context(self.iggy)
            jetstream = self._jetstreams.get(GLOBAL_ACCOUNT)
            if jetstream is not None:
                await self._running.enter_async_context(TopicStreams(self.iggy.service, jetstream))
            elif self._is_worker:
                logger.warning(
                    "Iggy shows no JetStream streams and JetStream no topics, because the streams are spread over workers: "
                    "the stream `nats` and the streams `iggy-...` are not there. Without spread_streams they are"
                )
            elif self._expects_streams:
                logger.warning("Iggy shows no JetStream streams: the global account has none where accounts are set up")
        except BaseException:
            await self.stop()
            raise
        self._announce()

    async def stop(self) -> None:
        """Hide the topics, answer what was sent, end the connections. Safe to call again."""
        await self._running.aclose()

    def _announce(self) -> None:
        """Log each listener, with a warning for one that other machines reach and that needs no secret."""
        for name, (host, port) in self.iggy.listeners().items():
            logger.info("Listening for Iggy clients (%s) on %s:%d", name, host, port)
            if not _is_loopback(host) and (name in WITHOUT_LOGIN or self.options.service.root_password == ROOT):
                logger.warning("Iggy (%s) on %s is open to every machine that reaches it", name, host)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
