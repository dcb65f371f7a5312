cimport cython
from headwater.broker.jetstream.items cimport Item
from headwater.broker.jetstream.subject_table cimport SubjectTable
from headwater.broker.router cimport Router

@cython.final
cdef class Acknowledging:
    cdef object _log  # a Log, or what view.py shows of one
    cdef dict _consumers
    cdef bytes _ack_head
    cdef object _rest
    cdef public Router router
    cdef public SubjectTable subjects
    cdef public bint is_plain
    cpdef take(self, list[Item] items)
