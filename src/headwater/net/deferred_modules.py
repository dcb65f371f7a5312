"""Modules of the standard library that are executed when one of their names is used first.

asyncio, logging and traceback import `inspect`, `tokenize` and others for what they do after an error or in debug mode:
a tenth of a start. On Python 3.14 traceback also has colours, `_colorize`, whose dataclasses take 5 ms of CPU time.
`importlib.util.LazyLoader` is not used because it executes a module as soon as another one imports it: Python then asks the
module for its `__spec__`.

Python looks for nothing when such a module is executed, so `before_reading` is called: a server that is out of descriptors
makes room for it (net/spare_descriptors.py).
"""

import sys
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType

RARELY_USED = ("_colorize", "inspect", "locale", "textwrap", "tokenize")

before_reading: list[Callable[[], None]] = []
_EXECUTING = RLock()
_waiting: dict[str, "DeferredModule"] = {}


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
    for make_room in before_reading:
        make_room()
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
