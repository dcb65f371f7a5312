cdef Py_ssize_t u32(bytearray buffer, Py_ssize_t at) noexcept
cdef long long u64(bytearray buffer, Py_ssize_t at) noexcept
