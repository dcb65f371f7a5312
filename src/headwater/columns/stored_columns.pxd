from headwater.wire.columns cimport ColumnDecoder
from headwater.wire.message_view cimport MessageView

cdef Py_ssize_t HEAD
cdef Py_ssize_t BATCH
cdef bytes MAGIC
cdef Py_ssize_t RECORD
cdef Py_ssize_t OLD_RECORD
cdef int NEWEST
cdef long long LOW

cdef class StoredDecoder(ColumnDecoder):
    cdef readonly Py_ssize_t stored_sid
    cdef public bytes refusal
    cdef object on_answer
    cpdef int on_message(self, MessageView message) except? -1
    cdef int take_answer(self, bytearray buffer, Py_ssize_t at, Py_ssize_t end, Py_ssize_t batches, long long following) except? -1
    cdef bint take_batch(self, bytearray buffer, long long base, int version, Py_ssize_t at, Py_ssize_t stop) except? -1
    cdef int refuse(self, str words, long long value) except? -1
