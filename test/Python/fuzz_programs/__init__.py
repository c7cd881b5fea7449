# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A fuzzer of programs: random descriptions, each written out as a user would write the program, and evaluated in
float64 by an interpreter that knows nothing of the compiler.

A description is data: sizes by name, inputs, integer tables, and steps in order, whose operands are names.

    generate.py     a random description from a seed
    scalars.py      score_mods, masks and elementwise expressions: random, as text, evaluated
    patterns.py     patterns likewise
    source.py       a description as Python text
    tensors.py      its inputs and tables, with their strides
    interpreter.py  its results, exact or rounded after every step
    judge.py        whether results and gradients are right
    worker.py       one description in a process of its own: right, refused, wrong, internal, crash or hang
    shrink.py       a smaller description that fails alike
    campaign.py     many of them, counted

    python -m fuzz_programs --count 1000 --seed 1 --jobs 2        (in test/Python)
"""
