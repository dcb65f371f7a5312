"""Routes to other brokers, in two dialects. Start reading at `service.py`, for messages at `forwarding.py`."""
