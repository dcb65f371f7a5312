from headwater.client_connection.connection_ops cimport ConnectionOps

cdef Py_ssize_t MOST_UNTIMED

cdef class ManyPublishes:
    cdef ConnectionOps connection
    cdef object messages
    cdef public Py_ssize_t sent
    cpdef bint send_some(self) except? -1
    cdef bint send_one(self, object message) except? -1
