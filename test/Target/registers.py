# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels whose code is ordered for few registers, run on the simulator, against float64.

Real kernels are ordered only where they do not fit in a thread's registers; here each is, as if a thread had fewer,
down to 16, and what the compiler says of it shows that it was.
"""

import re
import subprocess

import numpy as np
import weft
import weft.language as wl
import weft.simulator


@weft.jit
def product(a, b, scale, out, n: wl.constexpr, BLOCK: wl.constexpr):
    rows, columns = wl.arange(0, BLOCK), wl.arange(0, BLOCK)
    total = wl.zeros((BLOCK, BLOCK), wl.float32)
    for start in range(0, n, BLOCK):
        inner = start + wl.arange(0, BLOCK)
        left = wl.load(a + rows[:, None] * n + inner[None, :])
        right = wl.load(b + inner[:, None] * BLOCK + columns[None, :])
        total += wl.dot(left * wl.load(scale + inner)[None, :].to(wl.float16), right)
    kept = wl.load(scale + rows)
    for _ in range(2):
        total = total - wl.sum(total, axis=1)[:, None] * kept[None, :]
    wl.store(out + rows[:, None] * BLOCK + columns[None, :], total + wl.max(total, axis=0)[None, :])


@weft.jit
def rows(x, weight, out, sums, count, n: wl.constexpr, BLOCK: wl.constexpr):
    columns = wl.arange(0, n)
    w = wl.load(weight + columns)
    total = wl.zeros((BLOCK, n), wl.float32)
    for start in range(0, count, BLOCK):
        at = start + wl.arange(0, BLOCK)
        inside = (at < count)[:, None]
        value = wl.load(x + at[:, None] * n + columns[None, :], mask=inside, other=0.0)
        norm = value * wl.rsqrt(wl.sum(value * value, axis=1) / n + 1e-5)[:, None]
        total += norm
        running = wl.cumsum(norm * w[None, :], axis=1)
        wl.store(out + at[:, None] * n + columns[None, :], running, mask=inside)
    wl.store(sums + columns, wl.sum(total, axis=0))


def exact_product(a, b, scale):
    total = (a * scale.astype(np.float16).astype(np.float64)) @ b
    for _ in range(2):
        total = total - total.sum(1, keepdims=True) * scale[: len(total)]
    return total + total.max(0)


def exact_rows(x, weight):
    norm = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5)
    return np.cumsum(norm * weight, 1), norm.sum(0)


def ordered(kernel, registers, *arguments, **options):
    """Runs a kernel that is ordered for so many registers; gives what the compiler says of it."""
    made = kernel.warmup(*arguments, **options)
    command = ["weft-translate", "--mlir-to-ptx", "--remarks", f"--registers={registers}"]
    found = subprocess.run(command, input=made.ir["llvm"], capture_output=True, text=True, check=True)
    tensors = [each for each in arguments if isinstance(each, np.ndarray | np.int32)]
    report = weft.simulator.launch(
        found.stdout, made.name, (1,), 32 * made.num_warps, tensors, shared=made.shared_bytes, checks="all"
    )
    assert not report.findings, report.findings
    return found.stderr


def close(found, exact, tolerance):
    off = np.abs(found - exact).max() / np.abs(exact).max()
    assert off < tolerance, f"off by {off:.2g}, more than {tolerance:.2g}"


def main():
    seed = int(np.random.SeedSequence().entropy % 2**32)
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    said = ""
    for registers in (16, 48, 76, 96, 112):
        a = (random.standard_normal((64, 128)) / 8).astype(np.float16)
        b = random.standard_normal((128, 64)).astype(np.float16)
        scale = (random.random(128) / 64).astype(np.float32)
        out = np.full((64, 64), np.nan, np.float32)
        said += ordered(product, registers, a, b, scale, out, n=128, BLOCK=64, num_warps=4)
        close(out, exact_product(*(each.astype(np.float64) for each in (a, b, scale))), 2e-3)

        x, weight = (random.standard_normal(shape).astype(np.float32) for shape in ((45, 128), (128,)))
        out, sums = np.full((45, 128), np.nan, np.float32), np.full(128, np.nan, np.float32)
        said += ordered(rows, registers, x, weight, out, sums, np.int32(45), n=128, BLOCK=16, num_warps=2)
        for found, exact in zip((out, sums), exact_rows(x.astype(np.float64), weight.astype(np.float64)), strict=True):
            close(found, exact, 1e-5)
    assert len(re.findall(r"ordered anew, \d+", said)) >= 4, said
    assert len(re.findall(r"registers lack for \d+ indices", said)) >= 2, said


if __name__ == "__main__":
    main()
