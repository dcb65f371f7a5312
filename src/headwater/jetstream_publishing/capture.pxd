cimport cython
from headwater.group_commit.committer cimport Committer
from headwater.group_commit.clock cimport Clock
from headwater.jetstream_state.publish_options cimport PublishOptions
from headwater.model.dedup cimport DuplicateWindow
from headwater.streams.staging cimport Staging

cdef Py_ssize_t _MAX_HEADER_BLOCK

@cython.final
cdef class Capture:
    cdef Staging _staging
    cdef DuplicateWindow _duplicates
    cdef Clock _clock
    cdef Clock _ticks
    cdef bint _in_memory
    cdef object _rules
    cdef object _answers
    cdef bytes _named
    cdef public Committer committer
    cdef public int unjudged
    cdef public PublishOptions options
    cdef public bytes last_message_id
    cdef public object batches
    cdef public object fast
    cdef public object appending
    cpdef take(self, bytes subject, bytes reply, bytes header_block, bytes payload)
    cdef bint _take_with_options(
        self, Committer committer, bytes subject, bytes reply, bytes header_block, bytes payload
    ) except -1
    cdef bint _append_fast(self, Committer committer, bytes subject, bytes reply, bytes header_block, bytes payload) except -1
    cdef Py_ssize_t _stage_unchanged(
        self, Committer committer, bytes subject, bytes header_block, bytes payload, long long timestamp_ns
    ) except? -1
    cdef Py_ssize_t _size_of(self, bytes subject, bytes header_block, bytes payload) except -1
    cpdef Py_ssize_t copy(
        self, bytes subject, bytes header_block, bytes payload, long long timestamp_ns, long long sequence
    ) except? -1
