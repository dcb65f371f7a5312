"""The product's version, the nats-server it is held against, and the level of its JetStream API, at the bottom: every layer
says them, and none may import the package's front for it."""

VERSION = "0.1.0"

COMPATIBLE_VERSION = "2.15.1"
"""What INFO claims, for clients decide by it which features there are: the nats-server that ours was held against."""

API_LEVEL = 1
"""Of the JetStream API (NATS ADR-44): what a configuration of this level can ask for is honoured, or refused by name. Level
2 brought atomic batches, counters and schedules, which are refused; nats-server 2.15 says 5."""
