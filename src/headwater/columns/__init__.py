"""From bytes of the wire to columns, without a Python object for a message: CloudEvents attributes, and messages of Iggy."""
