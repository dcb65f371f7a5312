"""Our INFO for neighbours, and its changes: the name of our cluster, and the addresses at which its brokers accept
spokes.

A cluster without a configured name adopts that of a peer; hubs are then joined again under the new name. Spokes learn
the other brokers' addresses, and dial those if they lose us.
"""

from collections.abc import Callable, Iterable

from headwater.leaf.connection import LeafConnection
from headwater.wire.leaf_lines import LeafInfo


class OwnInfo:
    """`joined()`: the neighbours. `send_info(leaf)` sends INFO to a spoke."""

    def __init__(
        self,
        info: LeafInfo,
        joined: Callable[[], Iterable[LeafConnection]],
        send_info: Callable[[LeafConnection], None],
    ) -> None:
        self.urls: tuple[str, ...] = ()  # our addresses for spokes
        self.cluster_name: Callable[[], str] | None = None  # the cluster's current name
        self._info = info
        self._joined = joined
        self._send_info = send_info

    @property
    def info(self) -> LeafInfo:
        """Our current INFO."""
        name = self.cluster_name() if self.cluster_name is not None else ""
        return self._info.replace(cluster=name) if name and name != self._info.cluster else self._info

    def look(self) -> None:
        """Close the connections to hubs if the cluster has a new name; they are then joined again under it."""
        info = self.info
        if info is self._info:
            return
        self._info = info
        for leaf in self._joined():
            if leaf.remote is not None:
                leaf.close("", "the cluster has another name now")

    def listens(self, info: LeafInfo, urls: tuple[str, ...]) -> None:
        """We accept spokes at `urls`, which is empty if addresses are not announced."""
        self.urls = urls
        self._info = info.replace(leafnode_urls=urls)

    def peers_listen(self, urls: tuple[str, ...]) -> None:
        """The peers in our cluster accept spokes at `urls`: announce them to our spokes."""
        known = (*self.urls, *urls)
        if not self.urls or known == self._info.leafnode_urls:
            return
        self._info = self._info.replace(leafnode_urls=known)
        for leaf in self._joined():
            if leaf.remote is None and not leaf.websocket:
                self._send_info(leaf)
