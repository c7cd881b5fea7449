# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Names of a package that are loaded when they are first used. The package's stub ``__init__.pyi`` is the one list of
them: what type checkers and editors read is what Python reads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module


def attach(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, from the stub beside its ``__init__.py``, which is
    ``file``. Modules of the package itself are attributes too, but no part of ``__all__``. A name whose module needs a
    package that is not installed is an attribute that is missing, so that ``hasattr`` and ``inspect`` pass it by.
    """
    known = names(file)
    namespace = vars(sys.modules[package])

    def get(name: str) -> object:
        module = known.get(name)
        if module is None:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        try:
            found = import_module(f"{package}.{name}") if module == package else getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            needed = (error.name or "").partition(".")[0]
            if needed in ("", package.partition(".")[0]):
                raise
            message = f"{package}.{name} needs {needed}, which is not installed: pip install {needed}"
            raise AttributeError(message, name=name, obj=sys.modules[package]) from error
        namespace[name] = found
        return found

    def listed() -> list[str]:
        return sorted({*namespace, *known})

    return get, listed, [name for name, module in known.items() if module != package]


def names(file: str) -> dict[str, str]:
    """The modules of the names in a stub: of each line "from MODULE import NAME as NAME"."""
    found = {}
    with open(file + "i", encoding="utf-8") as stub:  # noqa: PTH123 (pathlib would take longer than all of this)
        for line in stub:
            match line.split():
                case ["from", module, "import", name, "as", known] if name == known:
                    found[name] = module
    return found
