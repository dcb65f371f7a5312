cimport cython

cdef unsigned long long MASK
cdef unsigned long long LOW


@cython.locals(a0=cython.ulonglong, a1=cython.ulonglong, a2=cython.ulonglong, a3=cython.ulonglong, b0=cython.ulonglong, b1=cython.ulonglong, b2=cython.ulonglong, b3=cython.ulonglong, c0=cython.ulonglong, c1=cython.ulonglong, c2=cython.ulonglong, c3=cython.ulonglong, d0=cython.ulonglong, d1=cython.ulonglong, d2=cython.ulonglong, d3=cython.ulonglong, w0=cython.ulonglong, w1=cython.ulonglong, w2=cython.ulonglong, w3=cython.ulonglong,
               at=Py_ssize_t)
cpdef absorb(object state, bytes data, Py_ssize_t packets)


cdef unsigned long long _word(unsigned char* data, Py_ssize_t at)
cdef unsigned long long _low_merge(unsigned long long v1, unsigned long long v0)
cdef unsigned long long _high_merge(unsigned long long v1, unsigned long long v0)
