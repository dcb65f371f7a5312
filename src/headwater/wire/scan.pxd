cpdef Py_ssize_t skip_blanks(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cpdef Py_ssize_t token_end(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cpdef Py_ssize_t parse_size(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
