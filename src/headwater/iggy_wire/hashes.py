"""Iggy's hashes, from the package xxhash; without it the import fails with the name of the extra."""

from headwater.errors import EnvironmentProblem

try:
    from xxhash import xxh3_64_intdigest as xxh3_64
    from xxhash import xxh32_intdigest as xxh32
except ImportError as error:
    raise EnvironmentProblem("Iggy needs the package xxhash", hint="pip install 'headwater[iggy]'") from error

__all__ = ["xxh3_64", "xxh32"]
