cpdef lookup(bytes block, bytes name)
