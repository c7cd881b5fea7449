# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``python -m weft`` is the ``weft`` command."""

import sys

from weft.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
