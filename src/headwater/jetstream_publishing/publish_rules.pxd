# Compiled as it is: every message that a rule or a limit concerns runs through it.
