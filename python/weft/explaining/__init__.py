# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the compiler made of a program or a kernel, and why: behind ``weft explain --why`` and ``--html``."""
