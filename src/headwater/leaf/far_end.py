"""The other end of a leaf node's connection: who it is, in its own words and by its credentials."""

from headwater.authorization.identity import Identity
from headwater.wire.leaf_lines import LeafConnect, LeafInfo
from headwater.wire.route_lines import TRACING


class FarEnd:
    """`connect`: what a spoke sent; `info`: what a hub sent. Names are empty until then. `identity`: the user of a spoke.
    `remote_account`: the account there, as the other end calls it.
    """

    def __init__(self) -> None:
        self.connect: LeafConnect | None = None
        self.info: LeafInfo | None = None
        self.identity = Identity()
        self.name = ""
        self.server_id = ""
        self.cluster = ""
        self.remote_account = ""

    @property
    def traced_name(self) -> str:
        """Its name in trace reports."""
        if self.info is not None:
            return self.info.server_name
        return self.connect.name if self.connect is not None else ""

    @property
    def traces(self) -> bool:
        """Whether it continues traces."""
        if self.info is not None:
            return self.info.proto >= TRACING
        return self.connect is not None and self.connect.protocol >= TRACING

    def is_same_account(self, other: "FarEnd") -> bool:
        """Whether both are the same account of the same server."""
        return (
            bool(self.server_id) and self.server_id == other.server_id and self.remote_account == other.remote_account
        )
