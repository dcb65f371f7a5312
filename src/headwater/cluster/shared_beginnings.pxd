from headwater.exchange.sublist cimport Beginning, Match, Sublist
from headwater.wire.client_ops cimport ClientOpParser
from headwater.wire.message_view cimport MessageView


cdef bint may_follow(ClientOpParser ops) except -1
cdef Beginning shared_beginning(Sublist here, Match match, Sublist there, Match remote, MessageView message)
