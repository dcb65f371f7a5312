"""JetStream on the durable log. Start reading at `service.py`; a message's way in is `stream.py`, its way out
`pull.py`."""
