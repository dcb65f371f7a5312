cimport cython


@cython.final
cdef class Xorshift:
    cdef unsigned int _state

    cpdef Py_ssize_t below(self, Py_ssize_t limit) noexcept
