# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""References and the rule that says when an attention kernel is right.

``accuracy`` judges a result by a float64 reference and the same formula in plain framework operations, ``hold``
raises where it is wrong;
``attention`` is that reference and those plain forms. Both need PyTorch.
"""

from weft.testing.accuracy import Accuracy, accuracy, hold
from weft.testing.attention import plain_attention, reference_attention

__all__ = ["Accuracy", "accuracy", "hold", "plain_attention", "reference_attention"]
