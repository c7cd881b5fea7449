# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Weft as the attention of other libraries, each in one line.

weft.integrations.transformers.register()   attn_implementation="weft" of Hugging Face's models
weft.integrations.sdpa.activate()           torch's scaled_dot_product_attention
"""

from __future__ import annotations

from weft import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
