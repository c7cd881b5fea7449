# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The loop model of sm_100a: products in tensor memory, by whom they are waited for, and what shared memory gives."""

import json
import re

import pytest
import weft
import weft.language as wl
import weft.tuning
from sass_support import listing
from script_modules import load_script
from test_warpgroups import compile_matmul
from weft.cli.__main__ import main
from weft.compiler import ptxas
from weft.compiler.entries import tensor_columns
from weft.cycles.control import Control
from weft.cycles.flow import loops
from weft.cycles.launch import FITTED, loop_cycles
from weft.cycles.listing import parse
from weft.cycles.opcodes import pipe_of, words_of
from weft.cycles.rates import rates_of
from weft.cycles.report import of_kernel, of_ptx
from weft.cycles.roles import COPY, Role, paced
from weft.cycles.tensor import product, products, read_once
from weft.cycles.values import Registers, Value, address, same_in_warp, step
from weft.errors import Error
from weft.simulator.cost import Figures, estimate, resident_blocks
from weft.targets import gpu_named, occupancy, target_named

needs_tools = pytest.mark.skipif(
    not (ptxas.find_tool("ptxas") and ptxas.find_tool("nvdisasm")), reason="ptxas or nvdisasm was not found"
)
B200 = rates_of(gpu_named("B200"))


def descriptor(m, n, kind=0):
    return m >> 4 << 24 | n >> 3 << 17 | kind << 7 | 1 << 4


def one(text):
    return parse(listing([(text, 1)]))["k"].instructions[0]


def products_of(count, m=128, n=128, a="gdesc[UR12]", name="UTCHMMA"):
    return [(f"{name} {a}, gdesc[UR8], tmem[UR6], tmem[UR10], idesc[UR11], UPT", 1)] * count


def kernel(body, m=128, n=128, kind=0):
    """A loop with products of that shape, whose mbarrier is at UR4, in rounds of two."""
    begin = [("UMOV UR11, " + hex(descriptor(m, n, kind)), 1), ("UMOV UR4, URZ", 1), ("S2UR UR5, SR_CgaCtaId", 1)]
    code = [*begin, ".L_1:", *body, ("@P0 BRA `(.L_1)", 1), ("EXIT", 5)]
    return parse(listing(code))["k"]


TELLS = [("ULEA UR9, UR5, UR4, 0x18", 1), ("UTCBAR [UR9], URZ", 1)]
WAITS = [("SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR9], R3", Control(stall=1, write=0))]
TURNS = [("ULOP3.LUT UR4, UR4, 0x8, URZ, 0x3c, !UPT", 1)]


def main_loop(body, warps=4, **shape):
    return of_kernel(kernel(body, **shape), B200, warps, 1).main


# ---- What the code says


def test_shapes_are_in_the_descriptor():
    """Bits of PTX ISA 9.7.16.4.2, as Weft's and FlashAttention-4's kernels have them."""
    plain = one("UTCHMMA gdesc[UR12], gdesc[UR8], tmem[UR67], tmem[UR10], idesc[UR11], !UPT")
    found = product(plain, 0x8200010)
    assert (found.m, found.n, found.k, found.element, found.a_shared, found.pair) == (128, 128, 16, "f16", True, False)
    assert found.shared_bytes == 2 * 128 * 32
    turned = product(one("UTCHMMA tmem[UR12], gdesc[UR8], tmem[UR6], tmem[UR10], idesc[UR11], UPT"), 0x8210010)
    assert (turned.n, turned.a_shared, turned.shared_bytes) == (128, False, 128 * 32)
    # two blocks' product: of each block half of the rows, and half of the right factor in its shared memory
    pair = product(one("UTCHMMA.2CTA gdesc[UR6], gdesc[UR12], tmem[UR10], tmem[UR62], idesc[UR63], UPT"), 0x10200490)
    assert (pair.m, pair.n, pair.element, pair.pair, pair.shared_bytes) == (128, 128, "bf16", True, (128 + 64) * 32)
    assert product(one("UTCQMMA gdesc[UR6], gdesc[UR12], tmem[UR1], tmem[UR2], idesc[UR3], UPT"), 0x8200010).k == 32
    assert (
        product(one("UTCIMMA gdesc[UR6], gdesc[UR12], tmem[UR1], tmem[UR2], idesc[UR3], UPT"), 0x8200020).element
        == "s8"
    )
    assert product(plain, descriptor(128, 64, 2)).k == 8


@pytest.mark.parametrize("bits", [1 << 2, 7 << 7])
def test_products_that_are_not_known_are_refused(bits):
    with pytest.raises(Error, match=re.escape("expected a dense product of 8, 16 or 32 bits for the loop model")):
        product(one("UTCHMMA gdesc[UR12], gdesc[UR8], tmem[UR67], tmem[UR10], idesc[UR11], UPT"), 0x8200010 | bits)


def test_scales_are_refused():
    code = kernel([*products_of(1, name="UTCOMMA"), *TELLS, *WAITS])
    with pytest.raises(Error, match="expected a product whose descriptor the code says"):
        of_kernel(code, B200, 4, 1)


def test_a_descriptor_that_the_code_does_not_say_is_refused():
    """It comes from memory, or differs by the way."""
    body = [("LDCU UR11, c[0x0][0x400]", 1), *products_of(1), *TELLS, *WAITS]
    with pytest.raises(
        Error, match="expected a product whose descriptor the code says, for the loop model, at 0040 of"
    ):
        products(kernel(body))
    either = [
        ("UMOV UR11, 0x8200010", 1),
        ("@P1 BRA `(.L_2)", 1),
        ("UMOV UR11, 0x8100010", 1),
        ".L_2:",
        *products_of(1),
    ]
    with pytest.raises(Error, match="expected a product whose descriptor the code says"):
        products(parse(listing([*either, ("EXIT", 5)]))["k"])
    same = [each if "0x8100010" not in each[0] else ("UMOV UR11, 0x8200010", 1) for each in either]
    assert [each.n for each in products(parse(listing([*same, ("EXIT", 5)]))["k"]).values()] == [128]


def test_values_add_up():
    """Names stand for what is not known; what came about alike is alike."""
    state = {}
    code = [
        ("S2UR UR16, SR_CgaCtaId", 1),
        ("UMOV UR17, 0x400", 1),
        ("ULEA UR17, UR16, UR17, 0x18", 1),
        ("UIADD3 UR68, UP6, UPT, UR17, 0x10, URZ", 1),
        ("IMAD.U32 R4, RZ, RZ, UR68", 1),
        ("ULOP3.LUT UR9, UR68, 0x38, URZ, 0xc0, !UPT", 1),
        ("ULOP3.LUT UR10, UR17, 0x8, URZ, 0xc0, !UPT", 1),
        ("VIADD R5, R4, 0xfffffff0", 1),
        ("USHF.L.U32 UR11, UR4, 0x3, URZ", 1),
        ("@P0 UMOV UR17, 0x0", 1),
    ]
    instructions = parse(listing([*code[:9]]))["k"].instructions
    for each in instructions:
        step(state, each)
    assert state["R5"] == state["UR17"] and state["R4"] == state["UR17"] + Value(16)
    assert state["UR9"].known is None and same_in_warp(state["UR9"])
    assert address(state, "R5+UR11+0x20") == state["UR17"] + state["UR11"] + Value(0x20)
    before = state["UR17"]
    step(state, parse(listing(code))["k"].instructions[-1])
    assert state["UR17"] != before, "a predicated move may not have happened"
    assert Value(7).known == 7 and (Value(7) + Value((1 << 32) - 7)).known == 0


def test_constants_go_through_loops():
    """A register that a loop changes has no number at its head, but one where the loop begins."""
    code = kernel([*TURNS, ("UIADD3 UR6, UPT, UPT, UR6, 0x1, URZ", 1)])
    (loop,) = loops(code)
    registers = Registers(code)
    assert registers.entering(loop.head, loop.blocks)["UR4"].known == 0
    inside = registers.at(registers.blocks[loop.head], code.instructions[3])
    assert inside["UR4"].known is None and inside["UR11"].known == descriptor(128, 128)


def test_what_all_lanes_read_is_read_once():
    loads = [
        ("LDS.128 R4, [UR9+0x10]", Control(stall=1, write=0)),
        ("LDS.128 R8, [R20+0x10]", Control(stall=1, write=0)),
        ("LDS.128 R12, [R21+0x10]", Control(stall=1, write=0)),
    ]
    begin = [
        ("S2R R20, SR_TID.X", 1),
        ("LOP3.LUT R21, R20, 0x80, RZ, 0xc0, !PT", 1),
        ("LOP3.LUT R22, R20, 0x8, RZ, 0xc0, !PT", 1),
    ]
    code = parse(listing([*begin, ".L_1:", *loads, ("LDS R2, [R22]", 1), ("@P0 BRA `(.L_1)", 1), ("EXIT", 5)]))["k"]
    (loop,) = loops(code)
    assert read_once(code, loop) == {0x30, 0x50}


def test_units_of_tensor_memory():
    assert [pipe_of(name) for name in ("LDTM", "STTM", "UTCBAR", "FFMA2", "FMNMX3", "UTCHMMA")] == [
        "tensor load", "tensor store", "control", "float32", "integer", "uniform",
    ]  # fmt: skip
    assert words_of(one("LDTM.x32 R100, tmem[UR19+0x80]")) == 32 and words_of(one("FFMA2 R4, R2, R4, R6")) == 2
    assert words_of(one("STTM.16dp256bit.x4 tmem[UR19], R4")) == 16


# ---- Cycles


def test_products_take_what_their_shape_says():
    """8,192 operations a cycle: 128 × 128 × 16 in 64 cycles, 64 rows as long as 128, and no less than 44."""
    for m, n, cycles in ((128, 128, 64), (64, 128, 64), (128, 256, 128), (128, 64, 44), (128, 16, 44)):
        found = main_loop([*products_of(8, a="tmem[UR12]"), *TELLS, *TURNS], m=m, n=n)
        assert found.matrix_cycles == 8 * cycles and found.cycles == pytest.approx(8 * cycles, abs=1), (m, n)
        assert found.macs == {"f16": 8 * m * n * 16} and found.tensor
    eight = main_loop([*products_of(8, name="UTCQMMA", a="tmem[UR12]"), *TELLS, *TURNS])
    assert eight.matrix_cycles == 8 * 64 and eight.macs == {"e4m3": 8 * 128 * 128 * 32}
    half = main_loop([*products_of(8, a="tmem[UR12]"), *TELLS, *TURNS], kind=2)
    assert half.matrix_cycles == 8 * 64 and half.macs == {"tf32": 8 * 128 * 128 * 8}


def test_who_waits_at_once_loses_the_latency():
    """Whoever waits for what it has just started loses more than a wait for the products before; two warpgroups hide
    each other's."""
    now = main_loop([*products_of(8), *TELLS, *WAITS, *TURNS])
    later = main_loop([*products_of(8), *TELLS, *TURNS, ("ULEA UR9, UR5, UR4, 0x18", 1), *WAITS])
    assert now.cycles > 512 + B200.group and later.cycles == pytest.approx(512 + 4, abs=1)  # and the try
    assert now.waits["products"] > 512 and "products" in later.waits
    both = main_loop([*products_of(8), *TELLS, *WAITS, *TURNS], warps=8)
    assert both.cycles == pytest.approx(1024, abs=8)


def test_a_wait_for_a_copy_is_none_for_products():
    copy = [("SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR9+0x100], R3", Control(stall=1, write=0))]
    found = main_loop([*products_of(8), *TELLS, *copy, *TURNS])
    assert "products" not in found.waits and found.cycles == pytest.approx(512 + 4, abs=3)


def test_sums_that_are_read_without_a_wait_are_refused():
    """What is not understood is not timed: a wait at an address that comes from memory."""
    reads = [("LDTM.x32 R4, tmem[UR6]", Control(stall=1, write=1))]
    unknown = [("LDCU UR20, c[0x0][0x380]", 1), ("SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR20], R3", 1)]
    with pytest.raises(Error, match="expected a wait for the products of the loop at 0030 of 'k'"):
        main_loop([*products_of(8), *TELLS, *unknown, *reads])
    assert main_loop([*products_of(8), *TELLS, *WAITS, *reads]).cycles > 512


def test_waits_behind_branches_are_taken():
    """A loop waits where there is something to wait for, by a branch that is always taken; tries once more, out of
    line, are passed by."""
    body = [
        *products_of(8),
        *TELLS,
        ("@P3 BRA `(.L_3)", 1),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR9], R3", Control(stall=1, write=0)),
        ("@!P1 BRA `(.L_4)", Control(stall=1, wait=(0,))),
        ".L_3:",
        *TURNS,
    ]
    again = [".L_4:", ("SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR9], R3", 1), ("@!P1 BRA `(.L_4)", 1), ("BRA `(.L_3)", 1)]
    begin = [("UMOV UR11, 0x8200010", 1), ("UMOV UR4, URZ", 1)]
    code = parse(listing([*begin, ".L_1:", *body, ("@P0 BRA `(.L_1)", 1), ("EXIT", 5), *again]))["k"]
    (found,) = [each for each in of_kernel(code, B200, 4, 1).loops if each.matrix_instructions]
    assert sum("PHASECHK" in line.text for line in found.lines) == 1 and found.waits["products"] > 512


def test_a_short_loop_of_products_is_no_wait():
    """Four products, and a try: as few instructions as a wait has."""
    body = [*WAITS, *products_of(4), *TELLS]
    assert len(body) < 10 and main_loop(body).matrix_cycles == 4 * 64


def test_loads_and_stores_of_tensor_memory():
    """A warp loads 64 bytes a cycle and stores 128: 32 words of 32 lanes take 64 cycles, and 32. A fence waits for
    stores."""
    loads = [(f"LDTM.x32 R{32 * i}, tmem[UR6]", Control(stall=1, write=1)) for i in range(4)]
    found = main_loop([*products_of(1), *TELLS, *WAITS, *loads * 4])
    assert found.busy["tensor load"] * found.cycles == pytest.approx(16 * 64)
    stores = [("STTM.x32 tmem[UR6], R32", 1)] * 4
    fence = [("FENCE.VIEW.ASYNC.T", Control(stall=1, write=2)), ("NOP", Control(stall=1, wait=(2,)))]
    late = main_loop([*products_of(1, a="tmem[UR12]"), *TELLS, *TURNS, *stores, *fence])
    early = main_loop([*products_of(1, a="tmem[UR12]"), *TELLS, *TURNS, *stores])
    assert late.busy["tensor store"] * late.cycles == pytest.approx(4 * 32) and late.cycles > early.cycles + 20


def test_products_and_loads_share_shared_memory():
    """A product of two factors there reads as fast as it multiplies: what else is read delays it; one whose left
    factor is in tensor memory leaves half."""
    loads = [("LDS.128 R4, [R20]", 1)] * 16  # 4 wavefronts of each scheduler: 256 cycles
    both = main_loop([*products_of(8), *TELLS, *TURNS, *loads])
    left = main_loop([*products_of(8, a="tmem[UR12]"), *TELLS, *TURNS, *loads])
    assert both.cycles == pytest.approx(512 + 256, rel=0.02) and 512 < left.cycles < both.cycles
    assert both.busy["shared"] == pytest.approx(1, abs=0.02)


def test_warps_stay_as_they_began():
    """Scores, exponentials, values, each waited for: two warpgroups that take exponentials at the same time go on so;
    apart, one multiplies meanwhile."""
    waited = [*TELLS, *WAITS, ("NOP", Control(stall=1, wait=(0,)))]
    special = [("MUFU.EX2 R7, R5", Control(stall=1, write=3))] * 112
    use = [("FADD R2, R7, R3", Control(stall=4, wait=(3,)))]
    body = [*products_of(8), *waited, *special, *use, *products_of(8), *TURNS, *waited]
    found = main_loop(body, warps=8)
    assert found.apart < 0.8 * found.cycles and found.apart > found.matrix_cycles
    alone = main_loop(body, warps=4)
    assert alone.apart == alone.cycles


def test_nothing_is_taken_twice():
    """What waits for its products is timed: the share that the fit takes for others is not taken again."""
    special = [("MUFU.EX2 R7, R5", Control(stall=1, write=3))] * 32
    found = main_loop([*products_of(8), *TELLS, *WAITS, *special])
    assert found.busy["special"] > 0.2 and loop_cycles(found, FITTED) == found.cycles


def test_threads_that_go_another_way_are_no_part_of_the_loop():
    begin = [
        ("S2R R4, SR_TID.X", 1),
        ("ISETP.GE.U32.AND P0, PT, R4, 0x80, PT", 1),
        ("@!P0 BRA `(.L_2)", 1),
        ("EXIT", 5),
    ]
    body = [".L_2:", ("UMOV UR11, 0x8200010", 1), ".L_1:", *products_of(8), *TELLS, ("@P1 BRA `(.L_1)", 1), ("EXIT", 5)]
    code = parse(listing([*begin, *body]))["k"]
    assert of_kernel(code, B200, 8, 1).running == 4 and of_kernel(code, B200, 12, 1).running == 12


def test_loops_behind_branches_to_registers_are_found():
    """FlashAttention-4's roles: code that nothing but a table leads to."""
    code = [("BRX R4", 1), ".L_1:", ("FADD R2, R2, R3", 4), ("@P0 BRA `(.L_1)", 1), ("EXIT", 5)]
    assert [each.first for each in loops(parse(listing(code))["k"])] == [0x10]
    assert loops(parse(listing([("EXIT", 5), *code[1:]]))["k"]) == ()


# ---- Roles


def role(name, body, **names):
    code = kernel([*body, ("FADD R2, R2, R3", 1)] if len(body) == 1 else body)
    (loop,) = loops(code)
    return Role(name, B200.ops(loop.path, products(code)), **names)


def test_roles_wait_for_one_another():
    """One starts products and waits until another has read the sums: chained, each waits for the other's time."""
    start = [*products_of(8), *TELLS, ("SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR20], R3", 1)]
    work = [("MUFU.EX2 R7, R5", 1)] * 64
    read = [
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR20], R3", 1),
        *work,
        ("SYNCS.ARRIVE.TRANS64.ART0 RZ, [UR21], R0", 1),
    ]
    chain = [
        role("products", start, tells=["sums"], waits=["read"]),
        role("softmax", read, waits=["sums"], arrives=["read"]),
    ]
    cycles, busy = paced(B200, chain, {}, {})
    assert cycles == pytest.approx(512 + 64 * 8 + B200.group + B200.barrier, rel=0.05)
    ahead, _ = paced(B200, chain, {}, {"read": 1})
    assert ahead == pytest.approx(512, rel=0.08), "a second place for sums hides one behind the other"
    assert busy["matrix"] == pytest.approx(512 / cycles)


def test_barriers_of_threads_between_roles():
    """All that come wait for one another; who only arrives goes on."""
    long, short = [("FADD R2, R2, R3", 4)] * 50, [("FADD R2, R2, R3", 4)]
    meet = [("BAR.SYNC.DEFER_BLOCKING 0x3, 0x100", 1)]
    pair = [role("a", [*long, *meet], meets=["=b"]), role("b", [*short, *meet], meets=["=b"])]
    cycles, _ = paced(B200, pair, {"=b": 2}, {})
    assert cycles == pytest.approx(200 + B200.barrier, rel=0.1)
    arrive = [("BAR.ARV R9, 0x40", 1)]
    handed = [role("a", [*long, *arrive], meets=["c"]), role("b", [*short, *meet], meets=["c"])]
    assert paced(B200, handed, {}, {})[0] == pytest.approx(202, rel=0.05)


def test_roles_without_the_names_of_their_barriers_are_refused():
    with pytest.raises(Error, match="expected 1 names of what 'a' waits for, but got 0"):
        paced(B200, [role("a", WAITS)], {}, {})
    stuck = [role("a", WAITS, waits=["never"])]
    with pytest.raises(Error, match="expected warps that go on, but got all of them waiting at barriers"):
        paced(B200, stuck, {}, {})
    assert paced(B200, [role("a", WAITS, waits=[COPY])], {}, {})[0] > 0


# ---- Weft's kernels


@weft.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr):
    a = wl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = wl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    c = wl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    m, n = wl.program_id(0) * BM, wl.program_id(1) * BN
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for k in range(0, K, BK):
        acc = wl.dot(a.load([m, k]), b.load([k, n]), acc)
    c.store([m, n], acc.to(wl.float16))


@needs_tools
@pytest.mark.parametrize("tile, warps, running", [((128, 256, 64), 8, 8), ((128, 128, 64), 4, 4)])
def test_a_matmul_keeps_the_units_busy(tile, warps, running):
    types = ", ".join(f"{name}_ptr:*fp16:16" for name in "abc") + ", M:i32:16, N:i32:16, K:i32:16"
    sizes = ", ".join(f"{name}={size}" for name, size in zip(("BM", "BN", "BK"), tile, strict=True))
    made = matmul.compile(f"{types}, {sizes}", target="sm_100a", num_warps=warps, num_stages=3)
    asked = {"entry": made.name, "num_warps": made.num_warps, "shared_bytes": made.shared_bytes}
    (found,) = of_ptx(made.ptx, "sm_100a", gpu_named("B200"), [asked])
    assert found.running == running and found.main.macs == {"f16": tile[0] * tile[1] * tile[2]}
    assert found.main.matrix_cycles == found.resident * tile[0] * tile[1] * tile[2] * 2 / 8192
    # its operands take all that shared memory gives, and each warp's tries of mbarriers a little more
    assert found.main.cycles == pytest.approx(1.04 * found.main.matrix_cycles, rel=0.03)


@needs_tools
@pytest.mark.parametrize("dtype, element, k", [("fp16", "f16", 16), ("fp32", "tf32", 8)])
@pytest.mark.parametrize(
    "tile, warps", [((64, 16, 16), 4), ((64, 128, 64), 8), ((256, 64, 64), 8), ((256, 128, 32), 16)]
)
def test_products_are_all_counted(tile, warps, dtype, element, k):
    """Of one warpgroup to four, of 64 rows to 256: what a step multiplies, in instructions that hold it."""
    made = compile_matmul(dtype, tile=tile, warps=warps, target="sm_100a")
    asked = {"entry": made.name, "num_warps": made.num_warps, "shared_bytes": made.shared_bytes}
    loop = of_ptx(made.ptx, "sm_100a", gpu_named("B200"), [asked])[0].main
    assert loop.macs == {element: tile[0] * tile[1] * tile[2]} and loop.matrix_instructions % (tile[2] // k) == 0


ATTENTION = """
import weft

@weft.program
def attention(q: "fp16[B,H,N,128]:16", k: "fp16[B,H,N,128]:16", v: "fp16[B,H,N,128]:16"):
    return weft.softmax(q, k) @ v
"""


@needs_tools
def test_explain_says_cycles_of_tensor_memory(tmp_path, capsys):
    file = tmp_path / "attention.py"
    file.write_text(ATTENTION)
    assert main(["explain", str(file), "--cycles", "--target", "sm_100a", "--json"]) == 0
    known = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    for name, each in known.items():
        if "rows" not in name:
            loop = max(each["loops"], key=lambda loop: loop["matrix_instructions"])
            assert loop["cycles"] >= loop["matrix_cycles"] > 0 and loop["tensor"] and loop["waits"]["products"] > 0, (
                name
            )
    forward = max(known["attend"]["loops"], key=lambda loop: loop["matrix_instructions"])
    # two warpgroups of 128 rows, 128 keys, 128 channels: instructions of 128 columns take 64 cycles
    assert forward["matrix_cycles"] == 2 * (128 // 16 * 64 + 128 // 16 * 64)
    assert main(["explain", str(file), "--cycles", "--target", "sm_100a", "--forward-only"]) == 0
    said = capsys.readouterr().out
    assert "attend on B200 SXM 180 GB: 12 warps a block, 1 block a multiprocessor" in said
    assert re.search(r"× their time; [0-9,]+ cycles where warps begin apart; bound by ", said)


@needs_tools
def test_tuning_by_the_loop_model_of_tensor_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))

    @weft.program
    def attention(q: "fp16[B,H,N,64]:16", k: "fp16[B,H,N,64]:16", v: "fp16[B,H,N,64]:16"):  # noqa: F722
        return weft.softmax(q, k) @ v

    found = weft.tuning.tune(
        attention, sizes={"B": 1, "H": 1, "N": 256}, candidates={"forward": ["128x128x4x2"]}, backward=False,
        records=str(tmp_path / "all.jsonl"), jobs=1, judge="cycles", target="sm_100a",
    )  # fmt: skip
    assert "B200" in found.device and "by the loop model" in found.device
    by = [each.launches[0] for each in found.rows if each.launches]
    assert len(by) >= 1 and all(each.loop["cycles"] > 0 and each.loop["macs"] and each.columns >= 128 for each in by)


# ---- Blocks on a multiprocessor


def test_tensor_memory_limits_blocks():
    """Of 512 columns: two blocks that take 256 each, one that takes 512, whatever else there is room for."""
    target = target_named("sm_100a")
    assert target.tensor_columns == 512 and target_named("sm_90a").tensor_columns == 0
    assert [occupancy(64, 4, 1024, target, columns) for columns in (0, 128, 256, 512)] == [8, 4, 2, 1]
    ptx = ".visible .entry k()\n{\n  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1+64], 256;\n}\n"
    assert tensor_columns(ptx, "k") == 256 and tensor_columns(ptx.replace("tcgen05.alloc", "other"), "k") == 0
    rates = dict.fromkeys(("sectors", "bytes", "shared_wavefronts", "barriers", "special"), 0.0)
    figures = Figures("k", 1, 4, 2, 1024, 64, 0, 100, warp_instructions=1.0, mma_macs={}, columns=256, **rates)
    assert resident_blocks(figures, target) == 2


def test_products_of_warps_are_no_products_in_tensor_memory():
    """On sm_100a the cost model takes a quarter of the peak for them; on others there is nothing to tell apart by."""
    rates = dict.fromkeys(("sectors", "bytes", "shared_wavefronts", "barriers", "special"), 0.0)
    macs = {"f16": 1e12}

    def seconds(target, gpu, columns):
        figures = Figures(
            "k", 148, 4, 2, 1024, 64, 0, 100, warp_instructions=1.0, mma_macs=macs, columns=columns, **rates
        )
        return estimate(figures, target_named(target), gpu_named(gpu)).resources["matrix units"]

    assert seconds("sm_100a", "B200", 0) == pytest.approx(4 * seconds("sm_100a", "B200", 256))
    assert seconds("sm_100a", "B200", 256) == pytest.approx(2e12 / 2250e12)
    assert seconds("sm_90a", "H100", 0) == pytest.approx(2e12 / 989.4e12)


# ---- The benchmark


def test_the_benchmark_deals_blocks_and_counts_operations():
    """FlashAttention-4, forward: 256 queries of a block, 128 keys of a step; the diagonal cuts the last two steps."""
    benchmark = load_script("benchmarks/loop_model_blackwell.py")
    full = next(each for each in benchmark.CURVES if each.name == "forward 128 full")
    causal = next(each for each in benchmark.CURVES if each.name == "forward 128 causal")
    assert benchmark.at(4096, 1.0, 2.0) == {4096: 1.0, 8192: 2.0}
    slow, fast = benchmark.Times(4000.0, 6000.0), benchmark.Times(2048.0, 2048.0)
    # the tensor core alone, at the boost clock, less what full units take from it
    most = 148 * 8192 * 1.965e9 * (1 - FITTED.power) / 1e12
    assert 0.9 * most < benchmark.tflops(full, 32768, fast) < most / 0.9
    assert benchmark.tflops(full, 32768, slow) < 0.75 * benchmark.tflops(full, 32768, fast)
    assert benchmark.tflops(causal, 4096, slow) < benchmark.tflops(causal, 32768, slow), "the diagonal's share falls"
    assert sum(each.seen for each in benchmark.CURVES) == 4 and len(benchmark.CURVES) == 11
