cimport cython


@cython.locals(end=Py_ssize_t, at=Py_ssize_t, size=Py_ssize_t, offset=Py_ssize_t, filled=Py_ssize_t,
               tag=int, kind=int, length=Py_ssize_t, more=Py_ssize_t, distance=Py_ssize_t, start=Py_ssize_t,
               out=bytearray, pattern=bytes)
cpdef bytes decode_block(bytes block, Py_ssize_t largest, bint whole=*)
