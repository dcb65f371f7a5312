"""The NATS protocol in both directions, without I/O. Its law is the table of `verbs.py`; start reading at
`client_ops.py`.
"""
