from headwater.exchange.router cimport PeerForwarding
from headwater.exchange.sublist cimport Sublist, Subscription


cdef class PeerInterest(PeerForwarding):
    cdef readonly bytes account
    cdef readonly Sublist interest
    cdef readonly Sublist behind
    cdef readonly dict origins
    cdef public object withheld  # SubjectSet or None
    cdef readonly dict targets
    cdef dict _known

    cpdef end_one(self, Subscription subscription)
