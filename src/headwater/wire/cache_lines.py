"""Memory by its cache lines: in the declarations beside this file are `prefetch`, which only the compiled half can do, and
how a slot of `known_subjects` is laid out."""
