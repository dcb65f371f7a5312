"""Iggy: a server face over the durable streams. The protocol itself is `iggy_wire`, its client `iggy_client`."""
