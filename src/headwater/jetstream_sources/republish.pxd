# Compiled as it is: it runs for every message of a stream that republishes.
