"""The state of a running broker, over HTTP. Start reading at `server.py`."""
