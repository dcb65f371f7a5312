cimport cython
from headwater.cluster.frames cimport Frame, Target
from headwater.exchange.sublist cimport Match, Outlet, Subscription


@cython.final
cdef class Choice:
    cdef readonly bytes queue
    cdef readonly list entries
    cdef readonly list targets
    cdef bytes name
    cdef bytes listed
    cdef list alone


@cython.final
cdef class Plan:
    cdef readonly list firsts
    cdef readonly list first_targets
    cdef readonly list only
    cdef readonly list choices
    cdef readonly bint limited
    cdef readonly list settled
    cdef readonly bint bare
