cimport cython
from headwater.cloudevents.event cimport CloudEvent

cdef bytes _FIRST_LINE

@cython.locals(name=str, attributes=dict, text="const unsigned char *")
cpdef object read_plain(bytes block, bytes payload)
cdef Py_ssize_t _name_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t _value_end(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
cdef Py_ssize_t _name_of_another(const unsigned char *text, Py_ssize_t at, Py_ssize_t end) noexcept
@cython.locals(lower=bytes)
cdef bint _concerns_events(bytes name) except? -1
@cython.locals(attributes=dict, name=str, block=bytes, text="unsigned char *")
cpdef object write_plain(CloudEvent event, bytes more)
cdef bytes _new_bytes(Py_ssize_t size)
@cython.locals(read="const unsigned char *", offset=Py_ssize_t)
cdef Py_ssize_t _put(unsigned char *text, Py_ssize_t at, bytes piece) noexcept
@cython.locals(read="const unsigned char *", offset=Py_ssize_t)
cdef Py_ssize_t _put_visible(unsigned char *text, Py_ssize_t at, str value) noexcept
cdef object _write_interpreted(dict attributes, bytes more)
