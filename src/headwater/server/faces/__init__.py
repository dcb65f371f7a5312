"""Iggy and JetStream over one set of streams: each face shows the streams of the other."""
