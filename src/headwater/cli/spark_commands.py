"""`headwater spark-submit`, `headwater pyspark` and `headwater spark-env`: Spark's own commands, with a working
environment.

They need a Java that Spark accepts, workers with this Python, and paths on which the workers find Headwater
(`headwater.spark.session` explains why). The first two set all of that and then become Spark's command, so that signals,
standard input and the exit status are its own; `spark-env` prints it for a shell: `eval "$(headwater spark-env)"`.

Spark settings made by `session` are passed as `--conf` before the given words, which override them. The master is taken
from `--master` only: a job for a cluster gets no SPARK_HOME, and none of the settings that are valid on one machine.
"""

import itertools
import os
import shlex
import sys
from pathlib import Path

from headwater.errors import ConfigError

# By `session`, for local masters.
CONFIGURED = ("spark.python.unix.domain.socket.enabled", "spark.python.daemon.module")


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
    """Replace this process with Spark's `command`. Raises EnvironmentProblem when Java, pyspark or pyarrow is missing."""
    from headwater.spark.session import prepare_environment, require_pyspark, settings

    require_pyspark()
    import pyspark

    package = Path(pyspark.__file__).parent
    local = is_local(argv)
    if command == "pyspark":  # it looks for its start-up file in a part of SPARK_HOME that our own lacks
        os.environ.setdefault("SPARK_HOME", str(package))
    prepare_environment(local=local)
    script = Path(os.environ.get("SPARK_HOME", package)) / "bin" / command
    given = settings(brief=False, log_level="WARN") if local else {}
    confs = [word for name in CONFIGURED if name in given for word in ("--conf", f"{name}={given[name]}")]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(script, [str(script), *confs, *argv])


def is_local(argv: list[str]) -> bool:
    """Whether a job with this command line runs on this machine, judging by `--master` only."""
    masters = [value for name, value in itertools.pairwise(argv) if name == "--master"]
    masters += [word.removeprefix("--master=") for word in argv if word.startswith("--master=")]
    return all(master.startswith("local") for master in masters)
