"""pyarrow ships no types; what we use of it goes through unchecked."""

from typing import Any

Array = Any
Buffer = Any
DataType = Any
Field = Any
MapType = Any
RecordBatch = Any
Schema = Any

def __getattr__(name: str) -> Any: ...
