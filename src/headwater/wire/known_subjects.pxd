cimport cython


cdef unsigned long long tag_of(unsigned char *name, Py_ssize_t length, Py_ssize_t generation) noexcept


@cython.final
cdef class Known:
    cdef bytes subject
    cdef object match
    cdef object only
    cdef Py_ssize_t generation


@cython.final
cdef class KnownSubjects:
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t evicted
    cdef Py_ssize_t _most
    cdef Py_ssize_t _used
    cdef Py_ssize_t _generation
    cdef Py_ssize_t _swept
    cdef bytearray _memory
    cdef list _owners
    cdef unsigned long long *_slots

    cdef void prefetch_slot(self, unsigned long long tag) noexcept
    cdef Py_ssize_t find_slot(self, unsigned long long tag) noexcept
    cdef object find(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end, unsigned long long tag)
    cdef int add(self, unsigned long long tag, Known known, bytes text, Py_ssize_t most) except -1
    cdef int forget_stale(self, Py_ssize_t generation) except -1
    cdef int _make(self, Py_ssize_t size) except -1
