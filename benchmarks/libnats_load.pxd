from libnats cimport Connection, Message, Subscription, natsStatus

cdef int TIMEOUT
cdef bytes _subject
cdef bytes _payload
cdef const char *subject
cdef const char *payload
cdef int size
cdef Connection connection
cdef long wanted
cdef long seen
cdef object watch

cdef void check(natsStatus status, const char *what) noexcept nogil
cdef void fail(natsStatus status, const char *what) noexcept nogil
cdef void flush() noexcept nogil
cdef void start_watch() noexcept nogil
cdef void publish_all(long messages) noexcept nogil
cdef void take(Connection source, Subscription subscription, Message message, void *closure) noexcept nogil
cdef void receive(Subscription subscription, long messages) noexcept nogil
cdef void ask(long messages) noexcept nogil
