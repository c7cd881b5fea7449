# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a machine with a GPU says of Weft, as one HTML and one JSON file: `weft doctor --gpu` and `make gpu`.

Sections, one after another: the tests that need a GPU, kernels of nvcc, Triton and Weft on the simulator and on the
GPU, the time of attention beside others', and of mechanisms. Each section is a list of cases (``cases``), run by a
process of its own (``worker``) that writes a row as each case ends (``rows``), so that what is done stays done: a case
that ends its process, or takes too long, is a row with its reason, and the next process goes on behind it (``watch``).
"""
