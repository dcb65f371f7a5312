"""The composed broker: configuration, system account, and all faces over one set of streams. Start reading at
`broker.py`.
"""
