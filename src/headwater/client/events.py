"""The events of a connection, under the names that programs import.

Their home is `headwater.client_connection.events`.
"""

from headwater.client_connection.events import AttemptFailed as AttemptFailed
from headwater.client_connection.events import CallbackFailed as CallbackFailed
from headwater.client_connection.events import Closed as Closed
from headwater.client_connection.events import Disconnected as Disconnected
from headwater.client_connection.events import Discovered as Discovered
from headwater.client_connection.events import Event as Event
from headwater.client_connection.events import EventCallback as EventCallback
from headwater.client_connection.events import EventStream as EventStream
from headwater.client_connection.events import Failed as Failed
from headwater.client_connection.events import LameDuck as LameDuck
from headwater.client_connection.events import Reconnected as Reconnected
from headwater.client_connection.events import Refused as Refused
from headwater.client_connection.events import SlowConsumer as SlowConsumer
