from headwater.jetstream_state.items cimport Item, Particulars
