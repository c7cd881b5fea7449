# Part of Weft. SPDX-License-Identifier: Apache-2.0
# The public names of weft.nn: type checkers read them here, and so does __init__.py.

from weft.nn.attention import Attention as Attention
from weft.nn.gau import GAU as GAU
from weft.nn.peaa import PEAA as PEAA
from weft.nn.sas import SAS as SAS
from weft.nn.sema import SEMA as SEMA
from weft.nn.sfa import SFA as SFA

__all__: list[str]
