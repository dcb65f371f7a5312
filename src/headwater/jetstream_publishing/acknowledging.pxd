cimport cython
from headwater.jetstream_state.items cimport Item
from headwater.jetstream_state.subject_table cimport SubjectTable
from headwater.exchange.router cimport Router

@cython.final
cdef class Acknowledging:
    cdef object _contents
    cdef object _log  # a Log, or what jetstream/view.py shows of one
    cdef object _consumers
    cdef bytes _ack_head
    cdef object _on_stored
    cdef public Router router
    cdef public SubjectTable subjects
    cdef public bint is_plain
    cdef public object alone
    cpdef take(self, list[Item] items)
    cpdef answer_first(self, Item item)
