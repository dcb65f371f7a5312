cdef Py_ssize_t _FRAME_SIZE
cdef Py_ssize_t _MAX_HEADERS
cdef Py_ssize_t _LONGEST
cdef int STRING

cpdef int check_frames(bytearray buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count, bytearray checksums) except? -1
cdef int _check_headers(bytearray buffer, Py_ssize_t start, Py_ssize_t end) except? -1
cdef bint _is_text(bytearray buffer, Py_ssize_t at, Py_ssize_t end) except? -1
cpdef Py_ssize_t skip_frames(bytes body, Py_ssize_t at, Py_ssize_t end, Py_ssize_t count) except? -1
cpdef bytes checksums_of(bytes body, Py_ssize_t at, Py_ssize_t end)
