cimport cython

cdef int _CONTENT_TYPE

@cython.locals(attributes=dict, data=bytes, text="const unsigned char *")
cpdef object read_plain(bytes source)
cdef Py_ssize_t _name_end(const unsigned char *text, Py_ssize_t start) noexcept
cdef bint _is_data(const unsigned char *text, Py_ssize_t start, Py_ssize_t stop) noexcept
cdef int _set_text(
    dict attributes,
    const unsigned char *text,
    Py_ssize_t name,
    Py_ssize_t name_end,
    Py_ssize_t start,
    Py_ssize_t end,
    int seen,
) except? -1
cdef int _set_word(
    dict attributes, const unsigned char *text, Py_ssize_t name, Py_ssize_t name_end, bytes word, int seen
) except? -1
cdef int _set_extension(dict attributes, str name, object value, int seen) except? -1
cdef bint _is_json(bytes data) except? -1
cdef Py_ssize_t _word_end(const unsigned char *text, Py_ssize_t at) noexcept
@cython.locals(digits=bytes)
cdef object _literal(bytes word)
