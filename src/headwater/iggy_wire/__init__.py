"""Iggy's protocol of every era: frames, commands, answers, message batches and JSON, as bytes in and values out."""
