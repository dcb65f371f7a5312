cdef Py_ssize_t _HEADER_SIZE
cdef bytes _MAGIC
cdef Py_ssize_t _MAGIC_SIZE
cdef Py_ssize_t _IDENTITY_SIZE
cdef Py_ssize_t _CRC_AT
cdef Py_ssize_t _REST_AT
cdef Py_ssize_t _SPAN_AT
cdef Py_ssize_t _SIZE_AT
cdef Py_ssize_t _BASE_AT
cdef int _VERSION
cdef int _LAST_DIALECT

cpdef Py_ssize_t step_over(bytes buffer, Py_ssize_t at, bytes identity, long long offset) except -1
