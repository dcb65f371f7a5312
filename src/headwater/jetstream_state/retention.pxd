# Compiled: a stream at its limits weighs a record for each publish.
