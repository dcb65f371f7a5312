"""Tables out of events: bronze, silver, rejects and gold as functions over DataFrames, and the directory that holds them."""
