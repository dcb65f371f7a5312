"""What a running broker tells over HTTP. Start reading at `server.py`."""
