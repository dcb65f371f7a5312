"""The client of Iggy: streams, groups, offsets, producers and consumers over TCP, TLS, QUIC, WebSocket and HTTP."""
