cimport cython

cpdef bint is_plain(bytes block)
cpdef list split_plain(bytes block)
cpdef object find_plain(bytes block, object name)
cdef str _trimmed(bytes block, Py_ssize_t start, Py_ssize_t stop)
cdef Py_ssize_t _colon(bytes block, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t _line_end(bytes block, Py_ssize_t at, Py_ssize_t end) noexcept
@cython.locals(name=str)
cdef str _name(bytes block, Py_ssize_t start, Py_ssize_t end)
cdef list _names
cdef Py_ssize_t _SLOTS
