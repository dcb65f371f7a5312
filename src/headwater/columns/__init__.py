"""Decode wire bytes straight into columns, without a Python object per message: CloudEvents attributes, Iggy messages,
and stored batches of a stream.
"""
