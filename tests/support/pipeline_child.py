"""Runs the pipeline once, as a process that a test can kill: `pipeline_child.py URL STREAM OUT_DIR MAX_OFFSETS`.

Prints `ready <pid of the JVM>`, a line per table and batch, and at the end `counts <JSON>`.
"""

import json
import sys
from dataclasses import asdict
from typing import Any

from headwater.spark import Progress, run_available_now, session


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def report(progress: Progress) -> None:
    print_line(f"wrote {progress.table} {progress.batch_id} {progress.rows}")


def main(url: str, stream: str, out_dir: str, max_offsets: str) -> None:
    spark = session("pipeline child", master="local[2]", brief=True)
    jvm: Any = spark._jvm
    print_line(f"ready {jvm.java.lang.ProcessHandle.current().pid()}")
    counts = run_available_now(spark, url, stream, out_dir, max_offsets_per_trigger=int(max_offsets), progress=report)
    print_line(f"counts {json.dumps(asdict(counts))}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
