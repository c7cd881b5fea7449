# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A compiled form is used again only where all that it read is equal: random code that reads a number, called, the
number changed, called again."""

import random

import pytest
import reads_support
import torch
import weft

Q, K, V = torch.randn(3, 1, 2, 12, 16).unbind()

#: a function of the number READ in every position that a program has, made once or anew for each call
POSITIONS = {
    "a score_mod": "lambda s, b, h, n, m: s * READ",
    "a score_mod's condition": "lambda s, b, h, n, m: s if READ > 0.6 else -s",
    "a score_mod, bound": "functools.partial(lambda a, s, b, h, n, m: s * a(), lambda: READ)",
    "a mask": "lambda b, h, n, m: (n - m) * 0.25 <= READ",
    "a scale": "lambda: READ",
    "a program": "lambda q, k, v: weft.softmax(q * READ, k) @ v",
    "a program's score_mod": "lambda q, k, v: weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s + READ * m) @ v",
    "a program's argument": "lambda: {'a': [READ]}",
}


@weft.program
def with_score(q, k, v, mod):
    return weft.softmax(q, k, weft.causal(), score_mod=mod) @ v


@weft.program
def with_mask(q, k, v, pattern):
    return weft.softmax(q, k, pattern) @ v


@weft.program
def with_scale(q, k, v, scale):
    return weft.softmax(q, k, scale=scale()) @ v


@weft.program
def with_argument(q, k, v, settings):
    return weft.softmax(q, k) @ (v * settings["a"][0])


def called(position, made):
    """The program of a position and the arguments of a call of it."""
    if position.startswith("a score_mod"):
        return with_score, (Q, K, V, made)
    if position == "a mask":
        return with_mask, (Q, K, V, weft.mask(made))
    if position == "a scale":
        return with_scale, (Q, K, V, made)
    if position == "a program's argument":
        return with_argument, (Q, K, V, made())
    return made, (Q, K, V)


def formula(position, x):
    """What a position's program gives, in float64."""
    q, k, v = Q.double(), K.double(), V.double()
    n, m = torch.arange(12)[:, None], torch.arange(12)
    scores = q @ k.mT / 4
    if position.startswith("a score_mod"):
        factor = (1 if x > 0.6 else -1) if "condition" in position else x
        scores = (scores * factor).masked_fill(m > n, -torch.inf)
    elif position == "a mask":
        scores = scores.masked_fill((n - m) * 0.25 > x, -torch.inf)
    elif position == "a scale":
        scores = scores * 4 * x
    elif position == "a program":
        scores = scores * x
    elif position == "a program's score_mod":
        scores = scores + x * m
    return scores.softmax(-1) @ (v * x if position == "a program's argument" else v)


def case(seed, number, repeats=False):
    """A random module with a program, its position, and what it is in words."""
    chosen = random.Random(seed + number)
    # an iterator gives another number each time that it is asked, also without a call
    code, words = reads_support.random_code(chosen, without="an iterator" if repeats else "")
    position = chosen.choice(list(POSITIONS))
    made = POSITIONS[position].replace("READ", code.read)
    if position.startswith("a program") and position != "a program's argument":
        code.inner += f"def program(q, k, v): return ({made})(q, k, v)\n"
        made = "weft.program(program)"
    module = reads_support.module_of(code, made, f"<reads {seed} {number}>")
    return module, position, f"{position} that reads {words} (case {number} of seed {seed})"


VALUES = (0.5, 0.75, 0.875, 0.5, 0.625)


def test_what_is_traced_is_what_is_read(seed):
    """The form for a call is, to the letter, that of a program that has never been called."""
    fresh = 0
    for number in range(100):
        module, position, words = case(seed, number, repeats=True)
        made = None
        for at, x in enumerate(VALUES):
            if at:
                module.change(x)
            anew = made is None or number % 2
            made = module.make() if anew else made
            program, args = called(position, made)
            other = weft.Program(program.fn)
            found = program.trace(program.bind(args, {}))
            right = other.trace(other.bind(args, {}))
            assert found.plain == right.plain, f"{words}, changed to {x}\n{module.TEXT}"
            fresh += found is program.trace(program.bind(args, {}))
    assert fresh > 100, "most calls with what did not change take the form that is there"


@pytest.mark.parametrize("number", range(12))
def test_what_is_computed_is_what_is_read(seed, number):
    module, position, words = case(seed, number)
    made = None
    for x in VALUES[:2]:
        module.change(x)
        if made is None or number % 2 or position == "a program's argument":
            made = module.make()
        program, args = called(position, made)
        found = program(*args)
        if "an iterator" in words:
            x = 0.5 if x == VALUES[0] else 0.75
        error = (found - formula(position, x)).abs().max()
        assert error < 1e-4, f"{words}, changed to {x}: {error}\n{module.TEXT}"
