# The part of libc that relay.py calls: declarations only. typings/cython/cimports/relay_system.pyi says the same to mypy.

from libc.stdint cimport uint32_t, uint64_t

cdef extern from "sys/epoll.h":
    enum:
        EPOLLIN
        EPOLLOUT
        EPOLL_CTL_ADD
        EPOLL_CTL_MOD
        EPOLL_CTL_DEL
    ctypedef union epoll_data_t:
        int fd
    ctypedef struct Event "struct epoll_event":
        uint32_t events
        epoll_data_t data
    int epoll_create1(int flags)
    int epoll_ctl(int poll, int operation, int descriptor, Event *event)
    int epoll_wait(int poll, Event *events, int most, int timeout)

cdef extern from "sys/socket.h":
    enum:
        MSG_DONTWAIT
        MSG_NOSIGNAL
    Py_ssize_t recv(int descriptor, void *buffer, size_t size, int flags)
    Py_ssize_t send(int descriptor, const void *buffer, size_t size, int flags)

cdef extern from "string.h":
    void *memchr(const void *bytes, int wanted, size_t size)
    int memcmp(const void *one, const void *other, size_t size)
    void *memcpy(void *target, const void *source, size_t size)
    void *memmove(void *target, const void *source, size_t size)
    void *memset(void *target, int value, size_t size)

cdef extern from "stdlib.h":
    void *calloc(size_t count, size_t size)
    void *realloc(void *old, size_t size)

cdef struct s_link:
    char *out
    Py_ssize_t begin
    Py_ssize_t end
    Py_ssize_t room
    char *rest
    Py_ssize_t kept
    bint open
    bint dirty
    bint stuck

cdef struct s_interest:
    int descriptor
    char subject[64]
    int subject_size
    char sid[24]
    int sid_size
    int following

cdef struct s_known:
    uint64_t hash
    char subject[48]
    int size
    int count
    int targets[12]
    int *more
    Py_ssize_t generation

ctypedef s_link Link
ctypedef s_interest Interest
ctypedef s_known Known
ctypedef Link *Links
ctypedef Interest *Interests
ctypedef Known *Knowns
ctypedef Event *Events
