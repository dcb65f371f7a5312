"""Modules of the standard library that are executed when one of their names is used first.

asyncio, logging and traceback import `inspect`, `tokenize` and others for what they do after an error or in debug mode:
a tenth of a start. `importlib.util.LazyLoader` is not used because it executes a module as soon as another one imports
it: Python then asks the module for its `__spec__`.

Modules of our own that functions import wait here, too (`import_later`), for the time after a start.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType

RARELY_USED = ("inspect", "locale", "textwrap", "tokenize")
# Seconds between modules, and after one that could not be read.
PAUSE, PAUSE_AFTER_FAILURE = 0.01, 1.0

_EXECUTING = RLock()
_waiting: dict[str, "DeferredModule"] = {}
_later: list[str] = []


class DeferredModule(ModuleType):
    """A module that has everything an import gives it except its own names."""

    def __getattr__(self, name: str) -> object:
        """Execute the module, if it was not, because it has no such name yet."""
        with _EXECUTING:  # another thread waits until the module is complete
            if _waiting.pop(self.__name__, None) is self:
                _execute(self)
        return ModuleType.__getattribute__(self, name)


def _execute(module: DeferredModule) -> None:
    assert module.__spec__ is not None and module.__spec__.loader is not None
    try:
        module.__spec__.loader.exec_module(module)
    except BaseException:  # out of descriptors: the next use tries again
        _waiting[module.__name__] = module
        raise
    object.__setattr__(module, "__class__", ModuleType)  # from now on names are looked up without `__getattr__`


def defer(*names: str) -> None:
    """Defer these modules, except those that are imported already."""
    for name in names:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            module = module_from_spec(spec)
            object.__setattr__(module, "__class__", DeferredModule)
            assert isinstance(module, DeferredModule)
            sys.modules[name] = _waiting[name] = module


def import_later(*names: str) -> None:
    """Let `execute_next` import these, too, the first of them first."""
    _later[:0] = names[::-1]


def execute_in_turn(call_later: Callable[[float, Callable[[], None]], object]) -> None:
    """Execute what waits, one module at a time, so that no client waits more than some milliseconds; `call_later` is the
    event loop's. What cannot be read, because the process is out of descriptors, is tried again."""
    pause = PAUSE_AFTER_FAILURE
    with suppress(OSError, ImportError):
        pause = PAUSE if execute_next() else 0.0
    if pause:
        call_later(pause, lambda: execute_in_turn(call_later))


def execute_next() -> bool:
    """Execute one deferred module, or import one for later; returns whether others wait. For servers: what an error
    needs must be there when there are no descriptors left to read it. Raises OSError or ImportError when that is so
    now: the module then waits for the next call. One that is not installed is passed over."""
    with _EXECUTING:
        if _waiting:
            _execute(_waiting.pop(next(iter(_waiting))))
        elif _later:
            _import(_later[-1])
            _later.pop()
        return bool(_waiting or _later)


def _import(name: str) -> None:
    try:
        import_module(name)
    except ModuleNotFoundError as failure:
        if failure.name is None or name.startswith("headwater"):
            raise
