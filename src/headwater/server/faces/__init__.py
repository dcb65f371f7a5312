"""Iggy and JetStream over one set of streams: what either face shows of the other's."""
