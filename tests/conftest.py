"""For all tests: no proxy, index or NATS settings of the surrounding shell reach them."""

import os

for _name in [name for name in os.environ if name.startswith("NATS_")]:
    del os.environ[_name]
