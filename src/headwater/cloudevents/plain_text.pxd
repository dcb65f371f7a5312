cimport cython

cdef int REQUIRED
cdef int _TIME_INDEX
cdef int _SPECVERSION_INDEX
cdef list _CORE
cdef int _CONTENT_TYPE_INDEX
cdef bytes _SPELLED
cdef bytes _JSON_TYPE

@cython.locals(text=str, character=Py_UCS4)
cpdef bint is_visible(object value) noexcept
@cython.locals(text=str, character=Py_UCS4)
cpdef bint is_plain_name(object value) noexcept
@cython.locals(text=bytes)
cpdef bint is_common_time(object value) except? -1
cdef bint is_common_time_at(const unsigned char *text, Py_ssize_t start, Py_ssize_t end) noexcept
cdef int _two_digits(const unsigned char *text, Py_ssize_t at) noexcept
cdef bint _are_digits(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
cdef int core_index(const unsigned char *text, Py_ssize_t start, Py_ssize_t end) noexcept
@cython.locals(spelled="const unsigned char *")
cdef int _index_if(const unsigned char *text, Py_ssize_t start, Py_ssize_t length, int index, Py_ssize_t at) noexcept
@cython.locals(json="const unsigned char *")
cdef bint set_core(
    dict attributes, const unsigned char *text, int index, Py_ssize_t start, Py_ssize_t end
) except? -1
cdef str ascii_text(const unsigned char *text, Py_ssize_t start, Py_ssize_t end)
cpdef bint has_common_context(dict attributes) except? -1
cpdef bint is_common(dict attributes) except? -1
