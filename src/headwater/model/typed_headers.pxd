cdef Py_ssize_t _LONGEST
cdef unsigned int _STRING_CODE
cdef unsigned int _BOOL_CODE
cdef unsigned int _INT64_CODE

cdef dict _values_of(headers)
cdef bint _is_valid(bytes data) except -1
cdef bint _is_text(bytes data, Py_ssize_t at, Py_ssize_t end) except -1
cdef dict _taken_apart(bytes data)
cdef dict _python_values(bytes data)
cdef _value_of(unsigned int code, bytes data, Py_ssize_t start, Py_ssize_t end)
cdef Py_ssize_t _u32(bytes data, Py_ssize_t at) noexcept
