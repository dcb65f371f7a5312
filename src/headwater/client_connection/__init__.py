"""The connection of a client: dialling, credentials, reconnecting, requests, subscriptions.

Start reading at `connection.py`; what is sent and what arrives is in `connection_ops.py`, compiled. `headwater.client` is
built on it, and what programs import is there.
"""
