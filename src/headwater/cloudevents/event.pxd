cimport cython

@cython.freelist(64)
cdef class CloudEvent:
    cdef readonly dict _attributes  # for the encoders of this package, which do not change it
    cdef readonly object _kind
    cdef readonly bytes _payload
    cdef readonly bint _verified

cpdef bint is_json_type(object content_type) except? -1
@cython.locals(made=CloudEvent)
cpdef object make_event(object kind_of, dict attributes, object kind, bytes payload, bint verified)
