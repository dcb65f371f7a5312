cdef Py_ssize_t _BOOT_AT
cdef Py_ssize_t _CRC_SIZE

cpdef bytes encode_end(bytes identity, long long end, long long base_offset, long long size, bytes boot=*)
