# Part of Weft. SPDX-License-Identifier: Apache-2.0
# The modules of the package, a line each, loaded when they are first used.

from weft.integrations import sdpa as sdpa
from weft.integrations import transformers as transformers

__all__: list[str]
