# Part of Weft. SPDX-License-Identifier: Apache-2.0
# The public names of weft.tuning: type checkers read them here, and so does __init__.py.

from importlib import import_module as import_module

from weft.tuning.libraries import tune_library as tune_library
from weft.tuning.result import Result as Result
from weft.tuning.result import Row as Row
from weft.tuning.run import bundle as bundle
from weft.tuning.run import tune as tune

__all__: list[str]
