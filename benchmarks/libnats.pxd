# distutils: libraries = nats
# The part of libnats (nats.c) that libnats_load.py measures: declarations only. typings/cython/cimports/libnats.pyi says
# the same to mypy.

from libc.stdint cimport int64_t

cdef extern from "nats/nats.h" nogil:
    ctypedef enum natsStatus:
        NATS_OK
    ctypedef struct natsConnection:
        pass
    ctypedef struct natsSubscription:
        pass
    ctypedef struct natsMsg:
        pass
    ctypedef void (*natsMsgHandler)(natsConnection *, natsSubscription *, natsMsg *, void *) noexcept nogil

    const char *natsStatus_GetText(natsStatus status)
    void nats_Sleep(int64_t milliseconds)
    natsStatus natsConnection_ConnectTo(natsConnection **connection, const char *urls)
    natsStatus natsConnection_FlushTimeout(natsConnection *connection, int64_t timeout)
    natsStatus natsConnection_Publish(natsConnection *connection, const char *subject, const void *data, int size)
    natsStatus natsConnection_Request(natsMsg **reply, natsConnection *connection, const char *subject, const void *data, int size, int64_t timeout)
    natsStatus natsConnection_Subscribe(natsSubscription **subscription, natsConnection *connection, const char *subject, natsMsgHandler handler, void *closure)
    natsStatus natsConnection_SubscribeSync(natsSubscription **subscription, natsConnection *connection, const char *subject)
    void natsConnection_Destroy(natsConnection *connection)
    natsStatus natsSubscription_SetPendingLimits(natsSubscription *subscription, int messages, int bytes)
    natsStatus natsSubscription_NextMsg(natsMsg **message, natsSubscription *subscription, int64_t timeout)
    void natsSubscription_Destroy(natsSubscription *subscription)
    int natsMsg_GetDataLength(const natsMsg *message)
    void natsMsg_Destroy(natsMsg *message)

ctypedef natsConnection *Connection
ctypedef natsSubscription *Subscription
ctypedef natsMsg *Message
