from headwater.jetstream_state.items cimport Item
from headwater.jetstream_state.subject_table cimport SubjectTable

cpdef dict previous_of(list[Item] items, SubjectTable subjects)
cpdef dict replaced_by(list[Item] items, SubjectTable subjects)
