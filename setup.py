"""The compiled half of the build: every `x.py` under src that has an `x.pxd` beside it is a hot module.

`pyproject.toml` says everything else. Three rules:

* An install never fails for want of a compiler. Without Cython, without a C compiler or without Python's headers the
  result is the same package, interpreted.
* All hot modules or none. They call each other at C level, so one compiled module beside an interpreted one that it
  cimports could not even be imported; when one does not build, the others are removed again.
* `src/` never holds compiled modules. An editable install stays interpreted; `./hw` builds a compiled copy of the tree
  under `build/compiled` and knows when it is out of date (docs/adr/0006-one-source-compiled-or-interpreted.md).

A mistake in a hot module (a Cython error) does stop the build: that is our fault, not the machine's.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,  # hot modules check sizes once, against the buffer, where they come in
    "wraparound": False,
    "initializedcheck": False,
    "nonecheck": False,
    "embedsignature": True,
    "warn.unreachable": False,  # the interpreted half behind `if cython.compiled: return` is meant to be unreachable
}


def hot_modules() -> dict[str, str]:
    """Module name to source path, relative to this file, of every module that is compiled."""
    declarations = sorted((ROOT / "src").rglob("*.pxd"))
    sources = [path.with_suffix(".py").relative_to(ROOT) for path in declarations if path.with_suffix(".py").exists()]
    return {".".join(path.with_suffix("").parts[1:]): path.as_posix() for path in sources}


def extensions() -> list[Any]:
    """The C extensions, or none where Cython is absent or HEADWATER_INTERPRETED is set."""
    if os.environ.get("HEADWATER_INTERPRETED", "0") not in ("", "0"):
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    optimize = os.environ.get("HEADWATER_OPTIMIZE", "-O3")  # -O1 compiles in less than half the time, for tests
    wanted = [
        Extension(name, [source], optional=True, extra_compile_args=[optimize, "-g0"])
        for name, source in hot_modules().items()
    ]
    return list(
        cythonize(
            wanted,
            nthreads=os.cpu_count() or 1,
            build_dir="build/cython",
            compiler_directives=DIRECTIVES,
            include_path=["src"],
            quiet=True,
        )
    )


class AllOrNothing(build_ext):
    """Builds the hot modules in parallel; takes all of them back when one is missing afterwards."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count() or 1

    def run(self) -> None:
        if self.inplace or self.editable_mode:
            print("headwater: left interpreted here; ./hw keeps the compiled copy in build/compiled")
            self.extensions = []
            return
        try:
            super().run()
        except Exception as problem:
            # `optional=True` alone is not enough: since setuptools 84 a missing compiler arrives as OSError and a
            # failing one as CalledProcessError, which it does not count as build errors. What is left to fail here
            # is the machine's C tool chain, whatever it throws.
            print(f"headwater: the C compiler does not work here: {problem}"[:300])
        built = [Path(self.get_ext_fullpath(extension.name)) for extension in self.extensions]
        absent = [path.name for path in built if not path.exists()]
        if absent:
            for path in built:
                path.unlink(missing_ok=True)
            print(f"headwater: interpreted, because {len(absent)} of {len(built)} modules did not compile")
            self.extensions = []

    def get_outputs(self) -> list[str]:
        return [path for path in super().get_outputs() if Path(path).exists()]


# The processes that translate import this file again where they are not forked: on macOS, and since Python 3.14 on Linux.
if __name__ == "__main__":
    setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNothing})
