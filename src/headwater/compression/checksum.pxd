cdef Py_ssize_t _SHORT
cdef bytes _TABLES

cpdef unsigned int extend_crc(unsigned int crc, bytes data) except? 0
cdef unsigned int extend_short(unsigned int crc, unsigned char *source, Py_ssize_t size) noexcept
