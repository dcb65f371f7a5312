cimport cython
from headwater.broker.auth.guard cimport Guard
from headwater.broker.router cimport Router
from headwater.broker.sublist cimport Outlet
from headwater.wire.client_ops cimport ClientOpHandler, ClientOpParser


@cython.final
cdef class Session(ClientOpHandler):
    cdef public object sessions
    cdef public Router router
    cdef public object link
    cdef public object gate
    cdef public str connection_type
    cdef public object account
    cdef public object identity
    cdef public Guard guard
    cdef public str nonce
    cdef public Py_ssize_t max_subscriptions
    cdef public Py_ssize_t reads
    cdef public double round_trip
    cdef public str end_reason
    cdef double _pinged_at
    cdef object _asked
    cdef public Outlet outlet
    cdef public ClientOpParser parser
    cdef public Py_ssize_t client_id
    cdef public long long since
    cdef public str name
    cdef public str lang
    cdef public str version
    cdef public str asked_user
    cdef public object mappings
    cdef public object tracer
    cdef public bint verbose
    cdef public bint pedantic
    cdef bint _checked
    cdef public bint no_responders
    cdef public int protocol
    cdef public bint introduced
    cdef public Py_ssize_t pings_out
    cdef public Py_ssize_t in_messages
    cdef public Py_ssize_t in_bytes

    cdef bint _may_publish(
        self,
        bytearray buffer,
        Py_ssize_t subject,
        Py_ssize_t subject_end,
        Py_ssize_t reply,
        Py_ssize_t reply_end,
    ) except? -1
