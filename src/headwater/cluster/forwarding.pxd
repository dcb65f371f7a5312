cimport cython
from headwater.cluster.frames cimport Frame, Target
from headwater.cluster.peer_interest cimport PeerInterest
from headwater.cluster.plans cimport Choice, Plan
from headwater.exchange.router cimport Router
from headwater.exchange.shown_subject cimport AddressedMessage
from headwater.exchange.sublist cimport Match, Outlet, Subscription
from headwater.model.xorshift cimport Xorshift
from headwater.wire.message_view cimport MessageView

cdef Py_ssize_t _WORTH


@cython.final
cdef class Forwarding(PeerInterest):
    cdef readonly Py_ssize_t headers_dropped
    cdef Xorshift _chance
    cdef AddressedMessage _addressed
    cdef bytes _inbox
    cdef Match _inbox_match
    cdef list _announced

    cdef bint _goes_out(self, MessageView message) except? -1
    cdef Plan _plan(self, Match remote)
    cdef int _send_run(
        self,
        Router router,
        Match match,
        Plan plan,
        MessageView message,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cdef int _announce(
        self, Router router, Match match, Plan plan, MessageView message, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
    cdef int _send_unshared(
        self, Router router, MessageView message, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
    cdef int _send(
        self, Router router, Match match, Plan plan, MessageView message
    ) except? -1
    cdef int _choose(
        self, Router router, Match match, Plan plan, MessageView message
    ) except? -1
    cdef Py_ssize_t _pick(self, Match match, Choice choice) except? -2
    cdef list _behind(self, bytes queue, bytes origin, MessageView message)
    cdef int _list(self, Target target, bytes queue, list[Target] others) except? -1
    cdef int _send_listed(self, Router router, bytes origin, Target target, MessageView message) except? -1
    cdef int _send_token(
        self, Router router, Target target, Subscription subscription, bint passed_on, MessageView message
    ) except? -1
    cdef int _count(self, Router router, Target target, MessageView message, Py_ssize_t count) except? -1
    cpdef bint pass_on(self, Router router, MessageView message, bytes queue) except? -1
