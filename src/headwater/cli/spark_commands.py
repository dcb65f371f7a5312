"""`headwater spark-submit`, `headwater pyspark` and `headwater spark-env`: Spark's own commands where they work as they are.

They need a Java that Spark accepts, workers with this Python, and paths on which these find Headwater
(`headwater.spark.session` has the reasons). The first two set all that and become Spark's command, so that signals, standard
input and the exit status are its own; `spark-env` prints it for a shell: `eval "$(headwater spark-env)"`.

What `session` sets of Spark itself comes as `--conf` before the words given, which win. Of the master only `--master` is
looked at: a job for a cluster is given no SPARK_HOME, and none of the settings that hold on one machine.
"""

import itertools
import os
import shlex
import sys
from pathlib import Path

from headwater.errors import ConfigError

CONFIGURED = (
    "spark.python.unix.domain.socket.enabled",
    "spark.python.daemon.module",
)  # of `session`, for local masters


def submit(argv: list[str]) -> int:
    """The verb `spark-submit`."""
    return become("spark-submit", argv)


def shell(argv: list[str]) -> int:
    """The verb `pyspark`."""
    return become("pyspark", argv)


def print_environment(argv: list[str]) -> int:
    """The verb `spark-env`. Raises EnvironmentProblem, and ConfigError for words behind it."""
    from headwater.spark.declarative import environment

    if argv:
        raise ConfigError(f"spark-env takes no arguments, and was given {shlex.join(argv)}", value=argv)
    for name, value in environment().items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def become(command: str, argv: list[str]) -> int:
    """Replace this process by Spark's `command`. Raises EnvironmentProblem when Java, pyspark or pyarrow is missing."""
    from headwater.spark.session import prepare_environment, require_pyspark, settings

    require_pyspark()
    import pyspark

    package = Path(pyspark.__file__).parent
    local = is_local(argv)
    if command == "pyspark":  # it looks for its start-up file below SPARK_HOME, in a part that our own has not
        os.environ.setdefault("SPARK_HOME", str(package))
    prepare_environment(local=local)
    script = Path(os.environ.get("SPARK_HOME", package)) / "bin" / command
    given = settings(brief=False, log_level="WARN") if local else {}
    confs = [word for name in CONFIGURED if name in given for word in ("--conf", f"{name}={given[name]}")]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(script, [str(script), *confs, *argv])


def is_local(argv: list[str]) -> bool:
    """Whether a job with these words runs on this machine, as far as the words say."""
    masters = [value for name, value in itertools.pairwise(argv) if name == "--master"]
    masters += [word.removeprefix("--master=") for word in argv if word.startswith("--master=")]
    return all(master.startswith("local") for master in masters)
