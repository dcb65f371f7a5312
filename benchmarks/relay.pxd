from relay_system cimport uint64_t, Events, Interests, Knowns, Links

cdef Py_ssize_t READ
cdef Py_ssize_t SLOTS
cdef uint64_t PRIME
cdef int TARGETS
cdef int SUBJECT
cdef int NEAR
cdef Py_ssize_t FIRST_ROOM
cdef int EVENTS
cdef Py_ssize_t HIGH

cdef Links links
cdef Interests interests
cdef Knowns table
cdef Events events
cdef char *arrived
cdef int poll
cdef int interested
cdef Py_ssize_t generation
cdef int dirty_count
cdef int *literals
cdef int *wild
cdef int wild_count
cdef int *dirty

cdef int watch(int descriptor, int operation, int wanted) except -1
cdef Py_ssize_t parse(int descriptor, const char *data, Py_ssize_t size) except -1
cdef Py_ssize_t control(int descriptor, const char *line, Py_ssize_t size) except -1
cdef Knowns known(const char *subject, Py_ssize_t size) except NULL
cdef Knowns remember(Knowns found, uint64_t mixed, const char *subject, Py_ssize_t size) except NULL
cdef int add_target(Knowns found, int number) except -1
cdef int *literal(const char *subject, Py_ssize_t size) except NULL
cdef bint covers(Interests interest, const char *subject, Py_ssize_t size)
cdef int deliver(Knowns found, const char *verb, Py_ssize_t verb_size, const char *subject, Py_ssize_t size, const char *tail, Py_ssize_t tail_size) except -1
cdef char *room(int descriptor, Py_ssize_t size) except NULL
cdef int write_text(int descriptor, const char *text, Py_ssize_t size) except -1
cdef int flush(int descriptor) except -1
cdef int read_from(int descriptor) except -1
cdef int drop(int descriptor) except -1
