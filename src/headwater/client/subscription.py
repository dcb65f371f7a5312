"""A subscription, under the names that programs import: their home is `headwater.client_connection.subscription`."""

from headwater.client_connection.subscription import MessageCallback as MessageCallback
from headwater.client_connection.subscription import Subscription as Subscription
from headwater.client_connection.subscription import WhenFull as WhenFull
