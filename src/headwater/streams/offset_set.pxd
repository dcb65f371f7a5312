cimport cython

cdef long long _BLOCK
cdef Py_ssize_t _BYTES
cdef bytes _ONES

@cython.final
cdef class Block:
    cdef bytearray bits
    cdef long long ones

cdef Block _NONE
cdef Block _FULL

@cython.final
cdef class OffsetSet:
    cdef dict _blocks
    cdef long long _count
    cdef long long _lowest
    cdef long long _looked_at
    cdef Block _looked
    cpdef bint has(self, long long offset) except -1
    cdef Block _look(self, long long number)
    cdef _put(self, long long number, Block block)
    cpdef Py_ssize_t add(self, long long start, long long end) except? -1  # long long: Cython writes a literal that C refuses
    cdef Py_ssize_t _add_part(self, long long number, long long low, long long high) except? -1
    cdef _grow(self, long long number, Block block, long long added)
    cpdef list add_each(self, object offsets, long long start, long long end)
    cpdef Py_ssize_t count(self, long long start, long long end) except? -1
    cpdef bint touches(self, long long start, long long end) except -1
    cpdef Py_ssize_t next_outside(self, long long offset) except? -1
    cdef Py_ssize_t _next_inside(self, long long offset, long long end) except? -1
    cpdef discard_below(self, long long offset)

cdef int _part_of_byte(Py_ssize_t at, long long low, long long high) noexcept
cdef Py_ssize_t _ones_in(Block block, long long low, long long high) except? -1
cdef Block _part_of(Block block, long long low, long long high)
