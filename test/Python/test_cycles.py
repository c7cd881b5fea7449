# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The loop model: control codes and loops of machine code, and cycles that follow from the machine's description."""

import dataclasses
import json
import random
import re

import pytest
import weft
import weft.tuning
from sass_support import listing, loop
from script_modules import load_script
from weft.cli.__main__ import main
from weft.compiler import ptxas
from weft.cycles.control import Control, decode, encode
from weft.cycles.flow import blocks, loops
from weft.cycles.judge import judged
from weft.cycles.launch import FITTED, Calibration, makespan, seconds
from weft.cycles.listing import ListingError, parse
from weft.cycles.machine import steady
from weft.cycles.opcodes import pipe_of, product_of, words_of
from weft.cycles.rates import rates_of
from weft.cycles.report import of_kernel, of_ptx
from weft.errors import Error
from weft.simulator.cost import LAUNCH_SECONDS, Figures, estimate
from weft.targets import gpu_named, gpus, targets
from weft.tuning import records

needs_tools = pytest.mark.skipif(
    not (ptxas.find_tool("ptxas") and ptxas.find_tool("nvdisasm")), reason="ptxas or nvdisasm was not found"
)
A100, H100 = rates_of(gpu_named("A100")), rates_of(gpu_named("H100"))


# ---- Control codes, listings


def test_control_codes_are_what_the_assembler_wrote():
    """MUFU.EX2 and the multiplication that waits for it, as ptxas 13.0 assembles them for sm_80."""
    assert decode(0x000E240000000800) == Control(stall=2, may_switch=False, write=0)
    assert decode(0x001FC80000400000) == Control(stall=4, may_switch=True, wait=(0,))
    assert decode(0x000FE20000000000) == Control(stall=1, may_switch=False)


def test_control_codes_round_trip(seed):
    draw = random.Random(seed)
    for _ in range(200):
        barrier = lambda: draw.choice([None, *range(6)])  # noqa: E731
        wait = tuple(sorted(draw.sample(range(6), draw.randrange(7))))
        control = Control(draw.randrange(16), draw.random() < 0.5, barrier(), barrier(), wait)
        assert decode(encode(control) | draw.randrange(1 << 41)) == control, seed


SMALL = loop([("@!P1 FFMA R5, R0, R5, R0", 4), ("MUFU.EX2 R7, R5", Control(stall=2, write=0))])


def test_a_listing_is_read():
    kernel = parse(SMALL)["k"]
    assert [each.name for each in kernel.instructions] == ["FFMA", "MUFU", "BRA", "EXIT"]
    first, second, branch, _ = kernel.instructions
    assert (first.guard, first.operands, first.control.stall) == ("!P1", "R5, R0, R5, R0", 4)
    assert (second.modifiers, second.control.write, second.address) == (("EX2",), 0, 16)
    assert branch.target == 0 and branch.text == "@P0 BRA `(.L_1)"


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda text: "", "expected machine code as nvdisasm -c -hex prints it"),
        (lambda text: ".text.k:\n", "expected instructions in '.text.k', but got none"),
        (lambda text: text.replace("/*0010*/", "/*0020*/"), "expected the instruction at 0010, but got 0020"),
        (lambda text: text.replace("(.L_1)", "(.L_2)"), "expected a label of 'k', but got '.L_2'"),
        (lambda text: text.replace(".L_1:", ".L_1:\n.L_1:"), "expected each label once, but got '.L_1' again"),
        (lambda text: text.replace("MUFU", "mufu"), "expected an instruction, but got 'mufu.EX2 R7, R5'"),
        (lambda text: text + text, "expected one section for 'k', but got a second"),
        (lambda text: text[: text.rindex("/* 0x")], "expected the upper word of an instruction"),
        (
            lambda text: ".size k,(.L_9 - k)\n" + text,
            "expected 'k' to end at label '.L_9', but got the end of the text",
        ),
    ],
)
def test_what_is_no_listing_is_refused(change, said):
    with pytest.raises(ListingError, match=re.escape(said)):
        parse(change(SMALL))


def test_mutated_listings_are_read_or_refused(seed):
    """Characters, lines and ends of a listing changed at random: an error with a reason, or kernels; nothing else."""
    draw = random.Random(seed)
    base = loop([(f"FFMA R{i}, R{i}, R1, R2", 4) for i in range(8)]) + loop([("BAR.SYNC 0x0", 5)], "other")
    refused = 0
    for _ in range(400):
        text = base
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(text) + 1)
            lines = text.splitlines(keepends=True)
            row = draw.randrange(len(lines))
            text = (
                draw.choice(
                    [
                        text[:at],
                        text[:at] + draw.choice("/*0x;:.`()@P!R\n\x00é") + text[at + 1 :],
                        "".join(lines[:row] + lines[row + 1 :]),
                        "".join([*lines[:row], draw.choice(lines), *lines[row:]]),
                    ]
                )
                or "\n"
            )
        try:
            for kernel in parse(text).values():
                for each in loops(kernel):
                    steady(A100, A100.ops(each.path), 2, warm=1, measured=1)
        except Error:
            refused += 1
    assert refused > 100, seed


# ---- Loops


def test_blocks_and_loops():
    """A loop in a loop, and a wait at an mbarrier, which is none."""
    wait = [".L_w:", ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR7], R9", 1), ("@!P0 BRA `(.L_w)", 5)]
    inner = [".L_i:", ("FFMA R0, R0, R1, R2", 4), ("@P1 BRA `(.L_i)", 5)]
    code = [".L_o:", ("IADD3 R3, R3, 0x1, RZ", 4), *wait, *inner, ("@P2 BRA `(.L_o)", 5), ("EXIT", 5)]
    kernel = parse(listing(code))["k"]
    assert [each.follows for each in blocks(kernel)] == [(1,), (1, 2), (2, 3), (0, 4), ()]
    outer, found = loops(kernel)
    assert (outer.first, outer.inner, found.first, found.inner) == (0, False, 0x30, True)
    assert [each.name for each in outer.path] == ["IADD3", "SYNCS", "BRA", "FFMA", "BRA", "BRA"]


def test_an_iteration_takes_the_way_with_products():
    """Of two ways the one with matrix instructions, else the shorter one, which tries a wait less."""
    code = [
        ".L_1:",
        ("@P0 BRA `(.L_2)", 5),
        ("IADD3 R3, R3, 0x1, RZ", 4),
        ("HMMA.16816.F32 R4, R8, R12, R4", 4),
        ".L_2:",
        ("@P1 BRA `(.L_3)", 5),
        ("FADD R2, R2, R3", 4),
        ".L_3:",
        ("@P2 BRA `(.L_1)", 5),
        ("EXIT", 5),
    ]
    (found,) = loops(parse(listing(code))["k"])
    assert [each.name for each in found.path] == ["BRA", "IADD3", "HMMA", "BRA", "BRA"]


# ---- Cycles


def cycles(rates, body, warps=1, blocks=1):
    (found,) = loops(parse(loop(body))["k"])
    return steady(rates, rates.ops(found.path), warps, blocks)


CHAIN = [("FFMA R0, R0, R1, R2", 4)] * 15 + [("FFMA R0, R0, R1, R2", 3)]  # and the branch: 64 cycles


def test_a_chain_takes_its_latency():
    assert cycles(A100, CHAIN).cycles == 64 and cycles(H100, CHAIN).cycles == 64


def test_warps_hide_each_others_latency():
    """An A100's scheduler has 16 lanes for float32, an H100's 32: two chains of 16 fit beside each other in 64 cycles,
    as on an H100 four do, but for the issue of their branches; eight take twice the time there, and four here."""
    assert cycles(A100, CHAIN, 2).cycles == 64
    assert cycles(H100, CHAIN, 2).cycles == pytest.approx(64, abs=1)
    assert cycles(A100, CHAIN, 4).cycles == 4 * 16 * 2
    assert cycles(H100, CHAIN, 8).cycles == 8 * 17  # each instruction takes a cycle of the scheduler
    assert cycles(H100, CHAIN, 1, blocks=8).cycles == 8 * 17


def test_units_bound_loops():
    """MUFU has 4 lanes a scheduler, integers 16: 8 and 2 cycles a warp's instruction."""
    special = [("MUFU.EX2 R7, R5", Control(stall=1, write=0))] * 16
    found = cycles(A100, special, 2)
    assert found.cycles == 2 * 16 * 8 and found.busy["special"] == found.cycles
    assert cycles(A100, [("LOP3.LUT R7, R5, R6, RZ, 0xc0, !PT", 1)] * 16, 3).cycles == 3 * 16 * 2
    # 4 words of each of 32 lanes are 4 wavefronts, and a multiprocessor makes one a cycle for all four schedulers
    assert cycles(A100, [("LDS.128 R4, [R8]", Control(stall=1, write=0))] * 16, 2).cycles == 2 * 16 * 16


def test_matrix_instructions_bound_loops():
    """16 × 8 × 16 multiply-adds at 256 a cycle and scheduler on an A100; 62 % of 512 by warps on an H100."""
    body = [("HMMA.16816.F32 R4, R8, R12, R4", 1)] * 32
    for warps in (1, 2, 3):
        found = cycles(A100, body, warps)
        assert found.cycles == warps * 32 * 8 == found.matrix
    assert cycles(H100, body).cycles == pytest.approx(32 * 4 / 0.62, abs=0.5)


def test_results_are_waited_for():
    """MUFU's result after 8 - 1 + 20 cycles, then the multiplication and the branch."""
    body = [("MUFU.EX2 R7, R5", Control(stall=2, write=3)), ("FMUL R7, R7, R7", Control(stall=4, wait=(3,)))]
    found = cycles(A100, body)
    assert found.cycles == 27 + 4 + 1
    assert found.stalls.cycles[16, "result of special"] == 25
    # two warps wait side by side
    assert cycles(A100, body, 2).cycles == 27 + 4 + 1


def test_copies_are_waited_for():
    """cp.async in groups of which one may be open: a group's latency is spread over two iterations."""
    body = [
        ("LDGSTS.E.BYPASS.128 [R4], [R6.64]", 1),
        ("LDGDEPBAR", Control(stall=1, write=0)),
        ("DEPBAR.LE SB0, 0x1", 1),
    ]
    waits_for_all = [*body[:2], ("DEPBAR.LE SB0, 0x0", 1)]
    assert cycles(A100, body).cycles < 0.6 * cycles(A100, waits_for_all).cycles
    assert cycles(A100, waits_for_all).cycles > A100.l2


def wgmma(register, waits=0, n=128):
    return [
        ("WARPGROUP.ARRIVE", 1),
        *[(f"HGMMA.64x{n}x16.F32 R{register}, gdesc[UR4], R{register}", 1)] * 7,
        (f"HGMMA.64x{n}x16.F32 R{register}, gdesc[UR4], R{register}, gsb0", 1),
        (f"WARPGROUP.DEPBAR.LE gsb0, 0x{waits}", 1),
    ]


def test_a_warpgroup_waits_for_its_products():
    """64 × 128 × 16 multiply-adds take 64 cycles; who waits for a group loses the latency after it, who lets one be
    open does not, and two warpgroups hide each other's."""
    alone = cycles(H100, wgmma(24))
    assert alone.matrix == 8 * 64 and alone.cycles > 8 * 64 + H100.group
    assert cycles(H100, wgmma(24, waits=1)).cycles == 8 * 64
    assert cycles(H100, wgmma(24), warps=2).cycles == 2 * 8 * 64


def test_barriers_hold_warps_together():
    """A warp that has less to do waits at the barrier; turns of a ring come one after another."""
    body = [*CHAIN, ("BAR.SYNC.DEFER_BLOCKING 0x0", 1)]
    assert cycles(A100, body, 2).cycles == pytest.approx(64 + A100.barrier, abs=4)
    turns = [("BAR.SYNC.DEFER_BLOCKING R9, 0x100", 1), *wgmma(24), ("BAR.ARV R9, 0x100", 1), *CHAIN]
    found = cycles(H100, turns, 2)
    assert 2 * 512 <= found.cycles <= 2 * (512 + H100.group + 16)


def test_it_is_deterministic():
    body = [*CHAIN, *wgmma(24, 1), ("MUFU.EX2 R7, R5", Control(stall=2, write=3))]
    assert cycles(H100, body, 3) == cycles(H100, body, 3)


# ---- What mnemonics are


def test_units_and_words():
    def one(text):
        return parse(listing([(text, 1)]))["k"].instructions[0]

    assert [pipe_of(name) for name in ("FFMA", "IMAD", "LOP3", "MUFU", "UIADD3", "LDSM", "BAR", "VOTEU")] == [
        "float32", "multiply", "integer", "special", "uniform", "shared", "control", "uniform",
    ]  # fmt: skip
    assert words_of(one("LDSM.16.M88.4 R4, [R8]")) == 4 and words_of(one("LDS.64 R4, [R8]")) == 2
    assert words_of(one("LDGSTS.E.BYPASS.128 [R4], [R6.64]")) == 4 and words_of(one("FADD R1, R2, R3")) == 1
    product = product_of(one("HGMMA.64x128x16.F32.BF16 R112, R176, gdesc[UR8].tnspB, R112"))
    assert (product.m, product.n, product.k, product.element, product.a_shared) == (64, 128, 16, "bf16", False)
    assert product.shared_bytes == 128 * 32
    assert product_of(one("HGMMA.64x8x16.F32 R24, gdesc[UR20], R24")).shared_bytes == (64 + 8) * 32
    assert product_of(one("HMMA.1688.F32.TF32 R4, R8, R12, R4")).element == "tf32"
    assert product_of(one("HFMA2.MMA R3, -RZ, RZ, 0, 1")) is None


@pytest.mark.parametrize("gpu", list(gpus()))
def test_every_gpu_has_rates_or_a_refusal(gpu):
    described = gpu_named(gpu)
    if targets()[described.target].pipes:
        assert rates_of(described).operations("f16") % 32 == 0
    else:
        with pytest.raises(Error, match="expected a target whose execution units the table has"):
            rates_of(described)


# ---- Of PTX

CHAINED = """.version 8.0
.target sm_80
.address_size 64
.visible .entry chained(.param .u64 p, .param .u32 n) {
  .reg .b64 %rd<4>; .reg .f32 %f<4>; .reg .b32 %r<3>; .reg .pred %p;
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; ld.global.f32 %f1, [%rd1]; mov.f32 %f2, %f1;
again:
  fma.rn.f32 %f2, %f2, %f1, %f1; ex2.approx.ftz.f32 %f2, %f2;
  sub.s32 %r1, %r1, 1; setp.ne.s32 %p, %r1, 0; @%p bra again;
  st.global.f32 [%rd1], %f2; ret;
}
"""


@needs_tools
def test_a_kernel_of_ptx():
    (kernel,) = of_ptx(CHAINED, "sm_80", gpu_named("A100"), [{"entry": "chained", "num_warps": 4, "shared_bytes": 0}])
    assert kernel.resident == 16 and kernel.main is None
    assert kernel.loops and all(each.limit in ("latency", "special") for each in kernel.loops)
    # each step is a multiplication, then the special unit, for 16 warps of a scheduler at 8 cycles
    for each in kernel.loops:
        steps = sum(line.text.startswith("MUFU") for line in each.lines)
        assert each.cycles == pytest.approx(16 * 8 * steps, rel=0.05)


@needs_tools
def test_kernels_that_are_not_there_are_refused():
    asked = [{"entry": "other", "num_warps": 4, "shared_bytes": 0}]
    with pytest.raises(Error, match="expected the kernel 'other' in the machine code, but got chained"):
        of_ptx(CHAINED, "sm_80", gpu_named("A100"), asked)
    with pytest.raises(Error, match="ptxas refused the PTX"):
        of_ptx(CHAINED.replace("fma.rn", "fma"), "sm_80", gpu_named("A100"), asked)


def test_missing_tools_are_named(monkeypatch):
    monkeypatch.setattr(ptxas, "find_tool", lambda name: None)
    asked = [{"entry": "chained", "num_warps": 4, "shared_bytes": 0}]
    with pytest.raises(Error, match="expected ptxas and nvdisasm on PATH"):
        of_ptx(CHAINED, "sm_80", gpu_named("A100"), asked)


def test_a_role_that_gives_its_registers_away_is_no_part_of_the_loop():
    code = [("USETMAXREG.DEALLOC.CTAPOOL 0x18", 5), ".L_1:", *wgmma(24), ("@P0 BRA `(.L_1)", 1), ("EXIT", 5)]
    found = of_kernel(parse(listing(code))["k"], H100, warps=12, resident=1)
    assert (found.warps, found.running) == (12, 8) and found.main.macs == {"f16": 2 * 8 * 64 * 128 * 16}
    assert found.main.cycles == 2 * 8 * 64 and found.main.limit == "matrix"


# ---- Launches


def test_blocks_are_dealt_to_whom_is_free():
    assert makespan([5.0] * 7, 3) == 15 and makespan([], 3) == 0
    assert makespan([4.0, 3.0, 2.0, 1.0], 2) == 5
    assert makespan([1.0, 2.0, 3.0, 4.0], 2) == 6


def test_a_launch_takes_its_blocks_or_its_bytes():
    gpu, none = gpu_named("A100"), Calibration(block=0, overlap=0, power=0)
    wave = seconds([1.41e6] * 108, 1, 0, 0, 2048, gpu, none)
    assert wave == pytest.approx(LAUNCH_SECONDS + 1e-3)
    assert seconds([1.41e6] * 217, 1, 0, 0, 2048, gpu, none) == pytest.approx(LAUNCH_SECONDS + 3e-3)
    assert seconds([1.41e6] * 216, 2, 0, 0, 2048, gpu, none) == pytest.approx(wave)
    assert seconds([1.41e6], 1, 2039e7, 0, 2048, gpu, none) == pytest.approx(LAUNCH_SECONDS + 10e-3)
    full = 2048 * 108 * 1.41e6  # operations of a wave whose matrix units always work
    slower = Calibration(block=0, overlap=0, power=0.2)
    assert seconds([1.41e6] * 108, 1, 0, full, 2048, gpu, slower) == pytest.approx(LAUNCH_SECONDS + 1e-3 / 0.8)


# ---- What judges by it

FACTS = {"cycles": 1000.0, "alone": 600.0, "instructions": 400, "macs": {"f16": 1 << 18}}


def counted(**facts):
    rates = dict.fromkeys(("sectors", "bytes", "shared_wavefronts", "barriers", "special"), 0.0)
    known = {"warp_instructions": 108 * 2 * 4 * 4000.0, "mma_macs": {"f16": 108 * 2 * 10.0 * (1 << 18)}, "loop": FACTS}
    return Figures("k", 216, 4, 3, 49152, 200, 0, 2000, **{**rates, **known, **facts})


def test_the_loop_model_judges_a_launch():
    """Ten iterations of 1000 cycles where both blocks are there."""
    target, gpu = targets()["sm_80"], gpu_named("A100")
    found = judged(counted(), target, gpu)
    assert found.resident == 2
    cycles = FITTED.block + 10 * 1000
    assert found.seconds == pytest.approx(LAUNCH_SECONDS + cycles / 1.41e9, rel=0.1) and found.seconds > LAUNCH_SECONDS
    # instructions beside the loop cost as much as those in it; a lone block is as fast as one alone
    assert judged(counted(warp_instructions=108 * 2 * 4 * 8000.0), target, gpu).seconds > 1.5 * found.seconds - 5e-6
    half = dataclasses.replace(
        counted(), blocks=108, warp_instructions=108 * 4 * 4000.0, mma_macs={"f16": 1080 * 262144.0}
    )
    assert judged(half, target, gpu).seconds < found.seconds
    # nothing timed: the cost model
    assert judged(counted(loop=None), target, gpu) == estimate(counted(loop=None), target, gpu)


@needs_tools
def test_tuning_by_the_loop_model(tmp_path, monkeypatch):
    """Candidates are ranked by it, records say so, and the cost model's are not taken for its own."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))

    @weft.program
    def attention(q: "fp16[B,H,N,64]:16", k: "fp16[B,H,N,64]:16", v: "fp16[B,H,N,64]:16"):  # noqa: F722
        return weft.softmax(q, k) @ v

    def tuned(judge):
        return weft.tuning.tune(
            attention, sizes={"B": 1, "H": 1, "N": 128}, candidates={"forward": ["64x64x4x2"]}, backward=False,
            records=str(tmp_path / "all.jsonl"), jobs=1, judge=judge,
        )  # fmt: skip

    first, second = tuned("model"), tuned("cycles")
    assert "by the cost model" in first.device and "by the loop model" in second.device
    assert second.measured == first.measured == 2 and second.reused == 0
    by = [each.launches[0].loop for each in second.rows if each.launches]
    assert all(each["cycles"] > 0 and each["macs"] for each in by)
    policies = {each["policy"] for each in records.read(tmp_path / "all.jsonl").records}
    assert sum(", loops by the loop model for A100" in each for each in policies) == 1 and len(policies) == 2
    assert tuned("cycles").reused == 2


def test_a_judge_that_is_none_is_refused(monkeypatch):
    @weft.program
    def attention(q: "fp16[B,H,N,64]:16", k: "fp16[B,H,N,64]:16", v: "fp16[B,H,N,64]:16"):  # noqa: F722
        return weft.softmax(q, k) @ v

    sizes = {"B": 1, "H": 1, "N": 128}
    with pytest.raises(ValueError, match="expected 'judge' to be 'model' or 'cycles', but got 'time'"):
        weft.tuning.tune(attention, sizes=sizes, judge="time")
    with pytest.raises(ValueError, match="expected a GPU of sm_80 for the loop model"):
        weft.tuning.tune(attention, sizes=sizes, judge="cycles", gpu="H100")
    monkeypatch.setattr(ptxas, "find_tool", lambda name: None)
    with pytest.raises(Error, match="expected ptxas and nvdisasm for judge='cycles'"):
        weft.tuning.tune(attention, sizes=sizes, judge="cycles")


# ---- The command

ATTENTION = """
import weft

@weft.program
def attention(q: "fp16[B,H,N,64]:16", k: "fp16[B,H,N,64]:16", v: "fp16[B,H,N,64]:16"):
    return weft.softmax(q, k) @ v
"""


@needs_tools
def test_explain_says_cycles(tmp_path, capsys):
    file = tmp_path / "attention.py"
    file.write_text(ATTENTION)
    assert main(["explain", str(file), "--cycles", "--forward-only"]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"loop at [0-9a-f]+: [0-9,]+ cycles, \d+ instructions a warp; matrix units [0-9,]+, busy \d+%", said
    )
    assert "a warp waits: " in said and said.endswith("no clock, no power\n")
    assert main(["explain", str(file), "--cycles", "--forward-only", "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)
    loop = max(kernel["loops"], key=lambda each: each["matrix_instructions"])
    assert loop["cycles"] >= loop["matrix_cycles"] > 0 and len(loop["lines"]) == loop["instructions"]


def test_explain_says_why_it_cannot(tmp_path, capsys, monkeypatch):
    file = tmp_path / "attention.py"
    file.write_text(ATTENTION)
    unknown = next(name for name, each in targets().items() if not each.pipes)
    assert main(["explain", str(file), "--cycles", "--forward-only", "--target", unknown]) == 1
    assert "expected a target whose execution units the table has" in capsys.readouterr().err
    monkeypatch.setattr(ptxas, "find_tool", lambda name: None)
    assert main(["explain", str(file), "--cycles", "--forward-only"]) == 1
    assert "expected ptxas and nvdisasm on PATH" in capsys.readouterr().err


# ---- The benchmark


def test_the_benchmark_holds_half_back():
    benchmark = load_script("benchmarks/loop_model.py")
    held = [benchmark.held_back(curve) for curve in benchmark.CURVES]
    assert len(held) == 24 and sum(held) == 12
    code = benchmark.Code("", "", 128, 64, 4)
    assert benchmark.steps_of(code, 256, False, False) == [(0, 4), (0, 4)]
    assert benchmark.steps_of(code, 256, True, False) == [(2, 2), (2, 0)]
    assert benchmark.steps_of(code, 256, True, True) == [(2, 2), (2, 0)]
