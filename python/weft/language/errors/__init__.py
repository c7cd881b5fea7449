# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The catalogue of what can be wrong with a kernel, by families. Each entry is a function that makes the error: its
docstring is the cause, the error says what was expected, what came, and what to do about it. docs/reference/Errors.md
is made of them.

The compiler adds where: the file, the line with a caret, and the calls that led there.
"""

from .entry import KernelError as KernelError
from .memory import *  # noqa: F403
from .names import *  # noqa: F403
from .products import *  # noqa: F403
from .shapes import *  # noqa: F403
from .statements import *  # noqa: F403
from .types import *  # noqa: F403
