"""JetStream on the durable log: the API, publishes, deliveries. Start reading at `service.py`; a message's way in is
`capture.py`, its way out `delivering.py`."""
