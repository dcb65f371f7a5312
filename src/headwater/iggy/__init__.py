"""Iggy: a server face over the durable streams, and clients of it. The protocol itself is `iggy_wire`."""
