cdef int DEEPEST
cdef long long NO_INSTANT
cdef long long MICROS

cpdef bint is_utf8(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cpdef bint is_string(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cpdef bint is_json_type(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cpdef bint folded_equals(bytearray buffer, Py_ssize_t start, bytes lower) noexcept
cpdef Py_ssize_t skip_blank(bytearray buffer, Py_ssize_t at, Py_ssize_t end) noexcept
cpdef Py_ssize_t skip_value(bytearray buffer, Py_ssize_t at, Py_ssize_t end) noexcept
cpdef Py_ssize_t skip_literal(bytearray buffer, Py_ssize_t at, Py_ssize_t end, bytes literal) noexcept
cpdef long long timestamp_micros(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cdef int sequence_length(bytearray buffer, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t skip_string(bytearray buffer, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t skip_escape(bytearray buffer, Py_ssize_t at, Py_ssize_t end) noexcept
cdef int hex_quad(bytearray buffer, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t skip_number(bytearray buffer, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t skip_digits(bytearray buffer, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t skip_key(bytearray buffer, Py_ssize_t at, Py_ssize_t end) noexcept
cdef int hex_digit(int byte) noexcept
cdef int two_digits(bytearray buffer, Py_ssize_t at) noexcept
cdef int days_in_month(int year, int month) noexcept
cdef int zone_minutes(bytearray buffer, Py_ssize_t at, Py_ssize_t end) noexcept
cdef long long days_since_1970(int year, int month, int day) noexcept
