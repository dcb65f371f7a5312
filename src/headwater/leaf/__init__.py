"""Leaf nodes and hubs, both sides: which interest crosses, who gets a message there, dialling. Start reading at
`service.py`, for messages at `forwarding.py`.
"""
