cpdef lone_message_id(bytes block, bytes named=*)
