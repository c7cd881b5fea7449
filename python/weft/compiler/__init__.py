# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The front end: from ``@weft.jit`` functions to tile IR and, through the native compiler, to PTX."""
