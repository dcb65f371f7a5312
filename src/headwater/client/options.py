"""What `connect` takes, under the name that programs import: its home is `headwater.client_connection.options`."""

from headwater.client_connection.options import ClientOptions as ClientOptions
from headwater.client_connection.options import ConnectArguments as ConnectArguments
