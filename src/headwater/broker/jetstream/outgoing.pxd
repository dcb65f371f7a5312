from headwater.broker.jetstream.items cimport Item
from headwater.broker.router cimport Router
from headwater.broker.sublist cimport Match
from headwater.streams.log_format cimport StoredRecord
from headwater.wire.memory cimport OutputBuffer

cdef Py_ssize_t LONGEST_NUMBER

cdef Py_ssize_t digits_of(long long number) noexcept
cdef int append_number(OutputBuffer buffer, long long number) except? -1
cdef int _append_ack_subject(OutputBuffer buffer, bytes head, StoredRecord record, long long given, long long pending) except? -1
cdef int _route_acks(Router router, list[Item] items, bytes head) except? -1
cdef Py_ssize_t _send_record(Router router, Match match, OutputBuffer buffer, bytes head, StoredRecord record, long long given, long long pending, Py_ssize_t room) except -1
cpdef int send_acks(Router router, list[Item] items, bytes head) except? -1
