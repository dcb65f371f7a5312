cimport cython

@cython.final
cdef class Clock:
    cdef object _read
    cdef bint _is_of_day
    cdef bint _is_monotonic
    cpdef Py_ssize_t now(self) except? -1  # long long: Cython writes a literal that C refuses
