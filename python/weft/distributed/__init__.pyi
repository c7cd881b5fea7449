# Part of Weft. SPDX-License-Identifier: Apache-2.0
# The public names of weft.distributed, a line each.

from weft.distributed.attend import attend as attend
from weft.distributed.layouts import Layout as Layout
from weft.distributed.layouts import layout as layout
from weft.distributed.planning import Plan as Plan
from weft.distributed.planning import plan as plan
from weft.distributed.sdpa import sdpa as sdpa
from weft.distributed.sema import sema as sema
from weft.distributed.sfa import sfa as sfa
from weft.distributed.traffic import Traffic as Traffic
from weft.distributed.traffic import counting as counting

__all__: list[str]
