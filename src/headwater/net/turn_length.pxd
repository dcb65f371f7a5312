# The part of the C library that Python does not offer.

cdef extern from "unistd.h":
    long syscall(long number, ...)
