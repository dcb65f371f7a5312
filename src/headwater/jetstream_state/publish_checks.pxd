cdef Py_ssize_t _SEARCH
cdef Py_ssize_t LONGEST_WALK
cdef Py_ssize_t _walk(bytes block, bytes named) except? -3
cdef Py_ssize_t mention(bytes block, Py_ssize_t size, Py_ssize_t at) except? -2
cdef bint stands(bytes block, Py_ssize_t size, Py_ssize_t at, bytes text) noexcept
cdef bytes value_at(bytes block, Py_ssize_t size, Py_ssize_t start)
cpdef bint has_status(bytes block) noexcept
cpdef lone_message_id(bytes block, bytes named=*)
cdef _searched(bytes block, bytes named)
cpdef of_batch_alone(bytes block)
