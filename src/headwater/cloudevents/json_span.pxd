cimport cython

cdef bytes KINDS
cdef int BLANK
cdef int NAME
cdef int VISIBLE
cdef int DIGIT
cdef int ESCAPED

cdef Py_ssize_t blanks_end(const unsigned char *text, Py_ssize_t at) noexcept
@cython.locals(kinds="const unsigned char *")
cdef Py_ssize_t run_end(const unsigned char *text, Py_ssize_t at, int kind) noexcept
cdef Py_ssize_t checked_end(const unsigned char *text, Py_ssize_t at) noexcept
cdef Py_ssize_t _member_start(const unsigned char *text, Py_ssize_t at) noexcept
@cython.locals(kinds="const unsigned char *")
cdef Py_ssize_t _string_end(const unsigned char *text, Py_ssize_t at) noexcept
cdef Py_ssize_t _word_end(const unsigned char *text, Py_ssize_t at) noexcept
cdef Py_ssize_t _digits_end(const unsigned char *text, Py_ssize_t at) noexcept
cdef Py_ssize_t trusted_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
