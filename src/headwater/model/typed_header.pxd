cimport cython

@cython.final
cdef class HeaderValue:
    cdef readonly object kind
    cdef readonly bytes raw

@cython.final
cdef class HeaderKey:
    cdef Py_hash_t _hash
    cdef readonly object kind
    cdef readonly bytes raw

@cython.locals(made=HeaderValue)
cdef HeaderValue value_of_wire(object kind, bytes raw)
@cython.locals(made=HeaderKey)
cdef HeaderKey key_of_wire(object kind, bytes raw)
cdef int _check_length(object raw, object rule) except -1
