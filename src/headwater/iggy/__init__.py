"""Iggy: the wire of every client generation, a server face over the durable streams, and a client."""
