cimport cython


@cython.final
cdef class _Hole:
    cdef Py_ssize_t start
    cdef Py_ssize_t end


@cython.final
cdef class SubjectRows:
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t scans
    cdef readonly Py_ssize_t generation
    cdef Py_ssize_t _head
    cdef Py_ssize_t _mask
    cdef Py_ssize_t _end
    cdef Py_ssize_t _wasted
    cdef bytearray _slot_memory
    cdef bytearray _row_memory
    cdef unsigned long long *_slots
    cdef unsigned long long *_rows
    cdef dict _free
    cdef dict _places
    cdef list _listed
    cdef _Hole _hole

    cpdef Py_ssize_t find(self, bytes subject) except? -1
    cpdef Py_ssize_t add(self, bytes subject) except? -1
    cpdef int drop(self, Py_ssize_t place, bytes subject) except -1
    cpdef Py_ssize_t count(self, Py_ssize_t place) except? -1
    cpdef Py_ssize_t last(self, Py_ssize_t place) except? -1
    cpdef Py_ssize_t weight(self, Py_ssize_t place) except? -1
    cpdef int set(self, Py_ssize_t place, long long count, long long last) except -1
    cpdef int set_weight(self, Py_ssize_t place, long long weight) except -1
    cpdef bytes name(self, Py_ssize_t place)
    cpdef Py_ssize_t following(self, Py_ssize_t place) except? -1
    cdef int slot_ahead(self, bytes subject) except -1
    cdef int row_ahead(self, bytes subject) except -1
    cdef Py_ssize_t _new_row(self, bytes subject) except? -1
    cdef int _put(self, unsigned long long slot) noexcept
    cdef int _resize(self, Py_ssize_t slots) except -1
    cdef int _reserve(self, Py_ssize_t words) except -1
    cdef int _move(self) except -1
    cdef Py_ssize_t _words_of(self, Py_ssize_t place) noexcept
