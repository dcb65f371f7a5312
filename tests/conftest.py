"""For all tests: no NATS settings of the surrounding shell reach them, and a slow machine is no failure.

Hypothesis times each example; on two cores shared with a JVM that limit says nothing about the code. What hangs is
ended by pytest's own timeout.
"""

import os

from hypothesis import settings

settings.register_profile("headwater", deadline=None, print_blob=True)
settings.register_profile("brief", settings.get_profile("headwater"), max_examples=30)  # of 100: ./hw test, interpreted
settings.load_profile("headwater")

for _name in [name for name in os.environ if name.startswith("NATS_")]:
    del os.environ[_name]
