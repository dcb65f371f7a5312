cimport cython

@cython.locals(attributes=dict, data=bytes, text="const unsigned char *")
cpdef object read_plain(bytes source)
@cython.locals(key=str, text="const unsigned char *")
cdef int _set_text(
    dict attributes, bytes source, Py_ssize_t name, Py_ssize_t name_end, Py_ssize_t start, Py_ssize_t end, int seen
) except? -1
@cython.locals(key=str, text="const unsigned char *")
cdef int _set_word(
    dict attributes, bytes source, Py_ssize_t name, Py_ssize_t name_end, bytes word, int seen
) except? -1
cdef bint _is_json(dict attributes, bytes data) except? -1
cdef Py_ssize_t _blanks_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t _name_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t _string_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t _word_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
@cython.locals(digits=bytes)
cdef object _literal(bytes word)
cdef Py_ssize_t _value_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
