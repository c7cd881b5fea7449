# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The command line: ``weft compile | inspect | run | sim``."""
