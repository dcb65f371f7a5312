cimport cython

@cython.locals(attributes=dict, data=bytes, name=str, text="const unsigned char *")
cpdef object read_plain(bytes source)
cdef bint _is_json(dict attributes, bytes data) except? -1
cdef Py_ssize_t _blanks_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t _name_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t _string_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t _word_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
@cython.locals(digits=bytes)
cdef object _literal(bytes word)
cdef Py_ssize_t _value_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
