# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- a reduction and its reference stand on one line
"""cp.async.bulk, one-dimensional and by tensor maps, and their reductions, against NumPy."""

from __future__ import annotations

import hopper_kernels as hopper
import numpy as np
import pytest
import weft.simulator as simulator
from hopper_kernels import INIT, MAP, MAPPED, bulk_load, copy_out, expect, kernel, tensor_load, tensor_store, wait

SEEDS = (0, 1, 7)


def clean(report: simulator.Report) -> simulator.Report:
    assert not report.findings, [str(finding) for finding in report.findings]
    return report


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bulk_copy_brings_its_bytes(seed):
    random = np.random.default_rng(seed)
    x = random.integers(0, 2**32, 512, np.uint32)
    y = np.zeros(256, np.uint32)
    body = "ld.param.u64 %d3, [y];\n" + INIT + expect(1024) + bulk_load(1024) + wait() + copy_out(1024, 64, "%d3")
    text = kernel(body, parameters=".param .u64 x, .param .u64 y")
    report = clean(simulator.launch(text, "k", 1, 64, [x, y], seed=seed))
    assert (y == x[:256]).all()
    assert report.counters["bulk_copies"] == 1 and report.counters["bulk_bytes_read"] == 1024


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bulk_store_writes_after_its_group(seed):
    body = """
  shl.b32 %r4, %r0, 2; add.u32 %r5, %r1, %r4; mul.lo.u32 %r6, %r0, 3; st.shared.u32 [%r5], %r6;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1], 256;
  @%p0 cp.async.bulk.commit_group;
  @%p0 cp.async.bulk.wait_group.read 0;
"""
    x = np.full(64, 7, np.uint32)
    report = clean(simulator.launch(kernel(body), "k", 1, 64, [x], seed=seed))
    assert (x == 3 * np.arange(64)).all()
    assert report.counters["bulk_bytes_written"] == 256


REDUCTIONS = [
    ("add", "f32", np.float32, np.add), ("add", "f64", np.float64, np.add), ("add", "u32", np.uint32, np.add),
    ("add", "u64", np.uint64, np.add), ("min", "s32", np.int32, np.minimum), ("max", "s64", np.int64, np.maximum),
    ("min", "f16", np.float16, np.minimum), ("add.noftz", "f16", np.float16, np.add), ("and", "b32", np.uint32, np.bitwise_and),
    ("or", "b64", np.uint64, np.bitwise_or), ("xor", "b32", np.uint32, np.bitwise_xor),
    ("inc", "u32", np.uint32, lambda a, b: np.where(a >= b, 0, a + 1)), ("dec", "u32", np.uint32, lambda a, b: np.where((a == 0) | (a > b), b, a - 1)),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "type", "dtype", "reference"), REDUCTIONS, ids=lambda each: str(each)[:12])
def test_reductions(operation, type, dtype, reference):
    random = np.random.default_rng(3)
    size = 512 // np.dtype(dtype).itemsize
    values = [random.integers(0, 100, size).astype(dtype) for _ in range(2)]
    body = f"""
  ld.param.u64 %d3, [y];
  {INIT}{expect(512)}{bulk_load(512)}{wait()}
  @%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}.{type} [%d3], [%r1], 512;
  @%p0 cp.async.bulk.commit_group;
  @%p0 cp.async.bulk.wait_group 0;
"""
    x, y = (value.copy() for value in values)
    clean(simulator.launch(kernel(body, parameters=".param .u64 x, .param .u64 y"), "k", 1, 32, [x, y]))
    np.testing.assert_array_equal(y, reference(values[1], values[0]).astype(dtype))


def load_box(array, box, start, **options) -> tuple[np.ndarray, simulator.Report]:
    """The bytes of shared memory after one load."""
    seed = options.pop("seed", 0)
    steps = options.get("element_strides") or (1,) * array.ndim
    count = int(np.prod([-(-size // step) for size, step in zip(box, steps, strict=True)])) * array.itemsize
    y = np.full(count, 0xAB, np.uint8)
    body = MAPPED + INIT + expect(count) + tensor_load(start, count) + wait() + copy_out(count, 64)
    text = kernel(body, parameters=MAP, shared=-(-count // 1024) * 1024)
    mapped = simulator.tensor_map(array, box, **options)
    return y, clean(simulator.launch(text, "k", 1, 64, [mapped, y], seed=seed))


@pytest.mark.parametrize(
    ("swizzle", "columns"), [(None, 40), ("32B", 16), ("64B", 32), ("128B", 64), ("128B", 32), ("64B", 16)]
)
@pytest.mark.parametrize("start", [(0, 0), (3, -8), (60, 48), (-5, 8), (200, 0)])
def test_swizzled_boxes_in_and_out_of_bounds(swizzle, columns, start):
    array = np.random.default_rng(0).integers(1, 2**16, (64, 72), np.uint16)
    y, report = load_box(array, (24, columns), start, swizzle=swizzle, seed=start[0] & 1)
    image = hopper.box_of(array, start, (24, columns)).reshape(-1).view(np.uint8)
    np.testing.assert_array_equal(y, hopper.swizzle(image, int(swizzle[:-1]) if swizzle else 0))
    inside = int((image.view(np.uint16) != 0).sum()) * 2
    assert report.counters["bulk_bytes_read"] == inside
    assert report.counters["bulk_bytes_filled"] == image.size - inside


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64])
def test_ranks_and_types(rank, dtype):
    shape, box, start = (3, 4, 3, 5, 48)[-rank:], (2, 3, 2, 3, 16)[-rank:], (-1, 2, 0, 3, 32)[-rank:]
    array = np.random.default_rng(rank).integers(1, 100, shape).astype(dtype)[..., :40]
    y, _ = load_box(array, box, start, swizzle=None)
    np.testing.assert_array_equal(y.view(dtype), hopper.box_of(array, start, box).reshape(-1))


def test_strides_of_elements_and_other_fills():
    array = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    y, _ = load_box(array, (8, 32), (2, 40), swizzle=None, element_strides=(2, 4), fill="nan")
    expected = hopper.box_of(array, (2, 40), (8, 32), np.nan, (2, 4)).reshape(-1)
    np.testing.assert_array_equal(y.view(np.float32), expected)
    assert np.isnan(expected).any()


def test_a_view_of_an_array():
    whole = np.arange(64 * 96, dtype=np.uint16).reshape(64, 96)
    y, _ = load_box(whole[4:40, 16:80], (8, 32), (2, 8), swizzle="64B")
    image = hopper.box_of(whole[4:40, 16:80], (2, 8), (8, 32)).reshape(-1).view(np.uint8)
    np.testing.assert_array_equal(y, hopper.swizzle(image, 64))


@pytest.mark.parametrize("operation", ["", "add", "max"])
@pytest.mark.parametrize("swizzle", [None, "128B"])
@pytest.mark.parametrize("start", [(0, 0), (12, 16), (-3, -8)])
def test_stores_leave_out_what_is_out_of_bounds(operation, swizzle, start):
    array = np.random.default_rng(2).integers(0, 50, (20, 40)).astype(np.float32)
    before = array.copy()
    source = np.random.default_rng(3).integers(0, 50, (8, 32)).astype(np.float32)
    image = hopper.swizzle(source.reshape(-1).view(np.uint8), 128 if swizzle else 0).view(np.float32).copy()
    body = (
        MAPPED + INIT + expect(1024) + bulk_load(1024) + wait() + tensor_store(start, operation)
        + "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;"
    )  # fmt: skip
    mapped = simulator.tensor_map(array, (8, 32), swizzle=swizzle, dtype="s32" if operation == "max" else None)
    clean(simulator.launch(kernel(body, parameters=MAP), "k", 1, 32, [mapped, image]))
    expected = before.copy()
    for row in range(8):
        for column in range(32):
            at = (row + start[0], column + start[1])
            if 0 <= at[0] < 20 and 0 <= at[1] < 40:
                value = source[row, column]
                combined = {"": value, "add": before[at] + value, "max": max(before[at], value)}[operation]
                expected[at] = combined
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"box": (8, 512)}, "1 to 256"),
        ({"box": (8, 6)}, "multiple of 16 bytes"),
        ({"box": (8, 64), "swizzle": "64B"}, "at most the 64 bytes"),
        ({"box": (8, 32), "strides": (72, 2)}, "strides to be multiples of 16"),
        ({"box": (8, 32), "element_strides": (9, 1)}, "1 to 8"),
        ({"box": (8, 32), "dtype": "complex"}, "complex"),
    ],
)
def test_maps_that_a_driver_refuses(options, message):
    array = np.zeros((16, 512), np.uint16)
    text = kernel(MAPPED, parameters=MAP)
    options = {"swizzle": None, **options}
    with pytest.raises(simulator.SimulatorError, match=message):
        simulator.launch(text, "k", 1, 32, [simulator.tensor_map(array, **options), np.zeros(4, np.uint32)])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"box": (8,)}, "2 numbers"), ({"swizzle": "16B"}, "swizzle"), ({"fill": "ones"}, "fill")],
)
def test_maps_that_make_no_sense(options, message):
    with pytest.raises(simulator.SimulatorError, match=message):
        simulator.tensor_map(np.zeros((16, 64), np.uint16), **{"box": (8, 32), **options})


@pytest.mark.parametrize("align", [64, 128])
def test_maps_in_structs(align):
    """As CUTLASS passes its parameters: CUDA 12 aligns maps to 64 bytes, CUDA 13 to 128."""
    array = np.arange(16 * 64, dtype=np.uint16).reshape(16, 64)
    y = np.zeros(2048, np.uint8)
    parameters = f".param .align {align} .b8 m[{align + 128}], .param .u64 x"
    load = MAPPED + f"add.s64 %d1, %d1, {align};\n" + INIT + expect(2048) + tensor_load((0, 0), 2048) + wait()
    text = kernel(load + copy_out(2048, 64), parameters=parameters, shared=2048)
    mapped = simulator.tensor_map(array, (16, 64), swizzle=None)
    clean(simulator.launch(text, "k", 1, 64, [(b"abc", np.int32(7), mapped), y]))
    np.testing.assert_array_equal(y.view(np.uint16).reshape(16, 64), array)


def test_the_elected_lane_is_the_lowest():
    """Thread 0 says how many bytes come, and the elected one sends for them: for all seeds they are the same."""
    body = INIT + "elect.sync _|%p4, 0xffffffff; setp.ge.u32 %p5, %r0, 32; @%p5 bra E;\n"
    body += (
        expect(512) + "@%p4 st.global.u32 [%d0+512], %r0;\n" + bulk_load(512).replace("@%p0", "@%p4") + "E:\n" + wait()
    )
    for seed in range(4):
        x = np.full(160, 9, np.uint32)
        clean(simulator.launch(kernel(body), "k", 1, 64, [x], seed=seed))
        assert x[128] == 0


def test_mbarriers_outside_of_shared_memory():
    for instruction in ("mbarrier.init.b64 [%d0], 1;", "mbarrier.arrive.b64 %d2, [%d0];"):
        report = simulator.launch(kernel(instruction), "k", 1, 1, [np.zeros(4, np.uint64)])
        assert {finding.kind for finding in report.findings} == {"out-of-bounds"}
        assert "expected an address of shared memory, where mbarriers are" in report.findings[0].message
