cimport cython


cdef unsigned long long tag_of(unsigned char *name, Py_ssize_t length, Py_ssize_t generation) noexcept


cdef class Receiver:
    cdef readonly bint wild
    cdef public Py_ssize_t maximum
    cdef public Py_ssize_t delivered
    cdef Py_ssize_t place


@cython.final
cdef class Known:
    cdef bytes subject
    cdef object match
    cdef Receiver only
    cdef bytes line
    cdef Py_ssize_t generation


@cython.final
cdef class KnownSubjects:
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t evicted
    cdef readonly Py_ssize_t met
    cdef unsigned long long *slots
    cdef readonly Py_ssize_t used
    cdef Py_ssize_t _generation
    cdef Py_ssize_t _swept
    cdef bytearray _memory
    cdef Py_ssize_t _mapped
    cdef list _owners
    cdef unsigned int now
    cdef bytearray _changes
    cdef unsigned int _noted
    cdef unsigned int *_changed_at

    cdef int change(self, bytes pattern) except -1
    cdef int _note_anew(self) except -1
    cdef bint is_right(self, Py_ssize_t index) noexcept
    cdef bint is_unchanged(self, Py_ssize_t index) noexcept
    cdef int _take_over(self, Py_ssize_t size, unsigned long long *slots, list owners) except -1
    cdef int make(self, Py_ssize_t size) except -1
    cdef int _empty(self, Py_ssize_t index) except -1
    cdef Py_ssize_t settle(self, Receiver receiver, bint stays) except -1
    cdef int forget_stale(self, Py_ssize_t generation) except -1
    cdef int forget(self, bytes subject, Py_ssize_t generation) except -1
    cdef int _close(self, Py_ssize_t index) except -1
    cdef Py_ssize_t find_slot(self, unsigned long long tag) noexcept
    cdef object find(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end, unsigned long long tag)
    cdef int add(self, unsigned long long tag, Known known, object outlet, bytes line, Py_ssize_t most) except -1
    cdef Py_ssize_t _room(self, unsigned long long tag) except -1
    cdef int _move_on(self, Py_ssize_t index) except -1
    cdef int _drop(self, Py_ssize_t index) except -1
    cdef int _fill(self, unsigned long long *slot, Py_ssize_t index, Known known, object outlet, bytes line) except -1
