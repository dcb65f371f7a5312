cdef Py_ssize_t _CRC_SIZE
cdef bytes _ZEROS

cpdef bytes mark_sector(long long durable_end, long long assigned_end, bytes identity)
