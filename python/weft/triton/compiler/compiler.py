# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.compiler.compiler``."""

from weft.compiler.fingerprint import compiler_fingerprint as triton_key
from weft.compiler.kernel import Kernel as CompiledKernel
from weft.compiler.libraries import compile

__all__ = ["CompiledKernel", "compile", "triton_key"]
