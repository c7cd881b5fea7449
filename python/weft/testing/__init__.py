# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""References and the rule that says when an attention kernel is right.

``accuracy`` holds a result against a float64 reference and against the same formula in plain framework operations;
``attention`` is that reference and those plain forms. Both need PyTorch.
"""

from weft.testing.accuracy import Accuracy, accuracy
from weft.testing.attention import plain_attention, reference_attention

__all__ = ["Accuracy", "accuracy", "plain_attention", "reference_attention"]
