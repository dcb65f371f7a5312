cimport cython
from headwater.exchange.client_state cimport Heartbeat, Login, Membership, Terms, Traffic
from headwater.exchange.sublist cimport Match, Outlet
from headwater.wire.client_ops cimport ClientOpHandler, ClientOpParser
from headwater.wire.message_view cimport MessageView
from headwater.wire.publish_series cimport PublishSeries


cdef PublishSeries SERIES


@cython.final
cdef class Session(ClientOpHandler):
    cdef public object sessions
    cdef public object link
    cdef public object tracer
    cdef public Outlet outlet
    cdef public ClientOpParser parser
    cdef public Py_ssize_t client_id
    cdef public long long since
    cdef public Login login
    cdef public Membership membership
    cdef public Terms terms
    cdef public Traffic traffic
    cdef public Heartbeat heartbeat
    cdef public bint introduced
    cdef public str end_reason
    cdef bint _subject_checked

    cdef Py_ssize_t _publish_ahead(self, ClientOpParser ops, Py_ssize_t at) except -1
    cdef Py_ssize_t _publish_series(self, ClientOpParser ops, Match match) except -1
    cdef int _publish(self, MessageView message) except? -1
    cdef int _publish_to(self, Match match, MessageView message) except? -1
    cdef bint _may_publish(self, MessageView message) except? -1
