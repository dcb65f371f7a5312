"""The product's version, the nats-server it is held against, and the level of its JetStream API, at the bottom: every layer
says them, and none may import the package's front for it."""

VERSION = "0.1.0"

COMPATIBLE_VERSION = "2.15.1"
"""What INFO claims, for clients decide by it which features there are: the nats-server that ours was held against."""

API_LEVEL = 5
"""Of the JetStream API (NATS ADR-44), nats-server 2.15's: what a configuration of this level can ask for is honoured, or
refused by name. Streams of other servers copy ours by it: level 4 brought acknowledging by flow control, 5 a stream's
identity."""
