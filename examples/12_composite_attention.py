# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Composite attention as matrices: what a gate makes of one head (equations 15 to 17), what filters before queries and
keys do to scores (figure 3), and what as many taps as tokens are. Draws them into a directory.
Run it: python examples/12_composite_attention.py [--out pictures]
"""

import argparse
import pathlib

import torch
import weft

N, D, GATES = 12, 64, 3

#: causal filters: each token and the two before it averaged; the token before in each one's place
FILTERS = {"none": [1.0], "aggregation": [1 / 3, 1 / 3, 1 / 3], "shift": [0.0, 1.0]}


def filtered_scores(taps, impulse):
    """q kᵀ of q = k = T x, where x is a unit impulse at a token: T's column there, by itself."""
    T = weft.toeplitz(torch.tensor(taps)[:, None]).matrix(N)[0, 0, 0]
    q = T[:, impulse]
    return q[:, None] * q[None, :]


def gated(u, g):
    """One head's attention, and what its gates make of it: a map of as many heads as the gate has."""
    one = weft.softmax(u, u, weft.causal())
    return one, weft.diag(g) @ one


def main():
    parser = argparse.ArgumentParser(description="Draw the matrices of composite attention.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("composite-attention"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    for name, taps in FILTERS.items():
        scores = filtered_scores(taps, impulse=5)
        weft.draw(scores, out / f"scores-{name}.svg")
        seen = (scores > 0).nonzero()
        print(f"filter {name}: the impulse at token 5 scores at tokens {seen.min()} to {seen.max()}")

    u, g = torch.randn(1, 1, N, D), torch.rand(1, GATES, N, 1)
    one, many = gated(u, g)
    weft.draw(one, out / "attention.svg")
    for head in range(GATES):
        weft.draw(many, out / f"gated-{head}.svg", head=head)
    error = (many.matrix() - g * one.matrix()).abs().max()
    assert error < 1e-6, error
    print(f"a gate of {GATES} heads makes {GATES} maps of one head's attention (largest error {error:.1e})")

    decay = torch.exp(-torch.arange(40) / 8)[:, None]
    weft.draw(weft.toeplitz(decay), out / "long-filter.svg", 40)
    exact = torch.tril(torch.exp(-(torch.arange(40)[:, None] - torch.arange(40)) / 8))
    error = (weft.toeplitz(decay).matrix(40)[0, 0, 0] - exact).abs().max()
    assert error < 1e-5, error
    print(f"40 taps over 40 tokens: a decaying matrix (largest error {error:.1e}); pictures are in {out}")


if __name__ == "__main__":
    main()
