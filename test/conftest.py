# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""For all Python tests: one thread for PyTorch and NumPy, in processes that tests start too.

References are small and as many tests run at once as there are cores: with as many threads each, they wait for one
another, spinning, which takes four times the processor's time. Set before either is imported.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
