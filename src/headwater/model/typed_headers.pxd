cdef Py_ssize_t _u32(bytes data, Py_ssize_t at) noexcept
