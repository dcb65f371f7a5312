cimport cython
from posix.signal cimport sigaction_t, siginfo_t

cdef unsigned long long _PAGE
cdef Py_ssize_t _mappings
cdef bint _guarded
cdef long long _checked
cdef int COARSE_CLOCK
cdef unsigned long long _from
cdef unsigned long long _to
cdef bint _lost
cdef sigaction_t _action
cdef sigaction_t _before


@cython.final
cdef class MappedFile:
    cdef Py_ssize_t _looks
    cdef Py_ssize_t _wanted
    cdef readonly Py_ssize_t size
    cdef char *_base

    cdef bytes look(self, int descriptor, Py_ssize_t size, long long position)
    cdef unsigned long long address(self, Py_ssize_t size, long long position) noexcept
    cdef int _map(self, int descriptor, long long end) except -1
    cdef int end(self) noexcept


cdef bint _guard() noexcept
cdef bint _still_guarded() noexcept
cdef bint _check() noexcept
cdef long long _tick() noexcept
cdef void _on_bus_error(int number, siginfo_t *info, void *context) noexcept nogil
