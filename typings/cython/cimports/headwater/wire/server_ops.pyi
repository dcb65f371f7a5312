from headwater.wire.server_ops import ServerOpHandler as ServerOpHandler
from headwater.wire.server_ops import ServerOpParser as ServerOpParser
