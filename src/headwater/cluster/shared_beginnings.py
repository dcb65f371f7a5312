"""Beginnings that subjects share in two tables at once: that of the clients here, and that of the peers' interest.

A series of publishes goes to the same receivers (`wire.publish_series`). Here and at the peers these must be the same for
every subject of it. Each table remembers a beginning of its own (`Sublist.beginning_of`); they serve together if they are
equal, or if the other table has nothing that such a subject could reach, which is how it mostly is: clients listen here, or
there.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.headwater.exchange.sublist import Beginning, Match, Sublist
    from cython.cimports.headwater.wire.client_ops import ClientOpParser
    from cython.cimports.headwater.wire.message_view import MessageView
    from cython.cimports.libc.string import memcmp
else:
    from headwater.exchange.sublist import Beginning, Match, Sublist
    from headwater.wire.client_ops import ClientOpParser
    from headwater.wire.message_view import MessageView


def may_follow(ops: ClientOpParser) -> cython.bint:
    """Whether a PUB follows the current op, so that it is worth looking for a series."""
    if cython.compiled:
        at: cython.Py_ssize_t = ops._position
        return at + 8 <= ops._filled and memcmp(PyByteArray_AS_STRING(ops.message.buffer) + at, b"PUB ", 4) == 0
    return False


def shared_beginning(
    here: Sublist, match: Match, there: Sublist, remote: Match, message: MessageView
) -> Beginning | None:
    """The beginning of the message's subject with which every subject has both Matches: `match` here, `remote` there."""
    buffer: bytearray = message.buffer
    ours: Beginning | None = here.beginning_of(match, buffer, message.subject, message.subject_end)
    theirs: Beginning | None = there.beginning_of(remote, buffer, message.subject, message.subject_end)
    if ours is not None and theirs is not None and ours.prefix == theirs.prefix:
        return theirs if ours.deep else ours
    if theirs is not None and not match.plain and not here.reaches(theirs.prefix):
        return theirs
    if ours is not None and not remote.plain and not remote.groups and not there.reaches(ours.prefix):
        return ours
    return None
