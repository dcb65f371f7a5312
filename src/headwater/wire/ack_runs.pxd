cpdef bint is_next(bytes before, bytes reply) except? -1
