"""JetStream on the durable log: the API, streams, deliveries. Start reading at `service.py`; a message's way in is
`jetstream_publishing/capture.py`, its way out `delivering.py`."""
