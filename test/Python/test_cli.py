# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft``'s commands: kernels and programs run with their types checked, output that is never cut, and errors, of
wrong files and options too, that say what was expected, without a traceback."""

import errno
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
import weft
from program_samples import SCORES
from runtime_samples import write_vector_add
from weft import folders
from weft.cli.__main__ import main

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """libadd, a library of one kernel; libscores, of one program; scores.py; and files that are none of these."""
    place = tmp_path_factory.mktemp("cli")
    write_vector_add(place / "libadd")
    (place / "scores.py").write_text(SCORES)
    assert main(["compile", str(place / "scores.py"), "-o", str(place / "libscores")]) == 0
    (place / "empty").touch()
    (place / "empty.py").touch()
    (place / "empty.npy").touch()
    (place / "binary").write_bytes(bytes(range(256)) * 20)
    for name in ("binary.npy", "binary.py", "binary.ptx"):
        shutil.copy(place / "binary", place / name)
    (place / "raises.py").write_text("import weft\n1 / 0\n")
    (place / "exits.py").write_text("import sys\nsys.exit('bye')\n")
    (place / "broken.py").write_text("def f(:\n")
    (place / "pickled.npy").write_bytes(b"\x80\x04\x95\x0b\x00\x00\x00")
    np.save(place / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.save(place / "x.npy", np.arange(1000, dtype=np.float32))
    np.save(place / "half.npy", np.arange(1000, dtype=np.float16))
    (place / "directory").mkdir()
    return place


@pytest.fixture
def weft_says(folder, monkeypatch, capsys):
    """weft_says(*arguments): exit code, output and errors of a command that runs in the folder."""
    monkeypatch.chdir(folder)

    def say(*arguments):
        try:
            code = main([str(each) for each in arguments])
        except SystemExit as left:  # argparse, of wrong usage
            code = left.code
        said = capsys.readouterr()
        return code, said.out, said.err

    return say


def command(*arguments, **options):
    return [sys.executable, "-m", "weft.cli", *map(str, arguments)]


def test_options_are_given_once():
    repeated = ["compile", "kernels.py", "-o", "library", "--target", "sm_80", "--target", "sm_90a"]
    found = subprocess.run(command(*repeated), capture_output=True, text=True, check=False)
    assert found.returncode == 2 and "--target: expected it once, but got it again with 'sm_90a'" in found.stderr


# ---- weft run: a kernel

NUMBERS = ("--arg", "f32[1000]=range", "--arg", "f32[1000]=ones")


def test_a_kernel(weft_says, folder):
    code, said, _ = weft_says("run", "libadd", *NUMBERS, "--arg", "f32[1000]=nan:z.npy", "--arg", "i32=1000")
    assert code == 0 and "x: as it was" in said and "z: changed" in said
    assert np.array_equal(np.load(folder / "z.npy"), np.arange(1000, dtype=np.float32) + 1)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            ["f16[1000]=zeros", *["f32[1000]=zeros"] * 2, "i32=5"],
            "elements of fp32 for 'x', but got fp16 in 'f16[1000]",
        ),
        (["u16[1000]=zeros", *["f32[1000]=zeros"] * 2, "i32=5"], "elements of fp32 for 'x', but got u16"),
        (["half.npy", *["f32[1000]=zeros"] * 2, "i32=5"], "elements of fp32 for 'x', but got fp16 in 'half.npy'"),
        (["i32[1000]=zeros", *["f32[1000]=zeros"] * 2, "i32=5"], "elements of fp32 for 'x', but got i32"),
        (["f64[1000]=zeros", *["f32[1000]=zeros"] * 2, "i32=5"], "elements of fp32 for 'x', but got fp64"),
        (["f32=1.5", *["f32[1000]=zeros"] * 2, "i32=5"], "a buffer, *fp32, for 'x', such as fp32[1024]=zeros"),
        (["f32[1000]=zeros"] * 4, "a number, i32, for 'n', such as i32=1, but got 'f32[1000]=zeros'"),
        ([*["f32[1000]=zeros"] * 3, "f32=5"], "a number of type i32 for 'n', but got 'f32=5'"),
        ([*["f32[1000]=zeros"] * 3, "i64=99999999999"], "'i32' (-2147483648 to 2147483647), but got 99999999999"),
        (["f32[1000]=zeros"] * 3, "4 --arg, one for each of x: *fp32, y: *fp32, z: *fp32, n: i32, but got 3"),
        (["f32[1000]=zeros"] * 5, "4 --arg, one for each of"),
    ],
)
def test_types_are_checked(weft_says, given, expected):
    code, said, wrong = weft_says("run", "libadd", *(word for each in given for word in ("--arg", each)))
    assert code == 1 and not said and wrong.startswith("weft run: ") and f"expected {expected}" in wrong, wrong


def test_types_are_checked_from_python(folder):
    library = weft.load(folder / "libadd")
    x, z = np.zeros(1000, np.float32), np.full(1000, np.nan, np.float32)
    for wrong, found in ((x.astype(np.float16), "fp16"), (torch.zeros(1000).bfloat16(), "bf16"), (x + 0j, "complex64")):
        with pytest.raises(
            weft.runtime.Error, match=f"'add': expected an array of fp32 for 'y', but got one of {found}"
        ):
            library.launch("add", 8, x, wrong, z, 1000)
    with pytest.raises(weft.runtime.Error, match="expected a number, i32, for 'n', but got an array"):
        library.launch("add", 8, x, x, z, np.ones(1000, np.int32))
    with pytest.raises(weft.runtime.Error, match="'x' on the CPU or a CUDA device, but got one on 'meta'"):
        library.launch("add", 8, torch.zeros(1000, device="meta"), x, z, 1000)
    with pytest.raises(weft.runtime.Error, match="a view that is negated when it is read"):
        library.launch("add", 8, torch._neg_view(torch.ones(1000)), x, z, 1000)
    assert np.isnan(z).all()


def test_a_program_of_a_library_has_no_gradients_of_its_own(folder):
    library = weft.load(folder / "libscores")
    q, k, v = (torch.randn(1, 2, 24, 16).half().requires_grad_() for _ in range(3))
    with pytest.raises(
        weft.runtime.Error, match=r"'scores': expected inputs without gradients.*differentiable\(NAME\)"
    ):
        library.run("scores", q, k, v)
    with torch.no_grad():
        plain = library.run("scores", q, k, v)
    assert torch.equal(plain, library.differentiable("scores")(q, k, v))


# ---- weft run: a program

OPERANDS = [word for _ in "qkv" for word in ("--arg", "f16[1,2,24,16]=random")]


def test_a_program(weft_says, folder, seed):
    outputs = ("--out", "out=out.npy", "--seed", seed, "--device", "simulator")
    code, said, wrong = weft_says("run", "libscores", "--program", "scores", *OPERANDS, *outputs)
    assert code == 0 and "ran 'scores' on simulator" in said and "out: fp16 [1, 2, 24, 16]" in said, wrong
    rng = np.random.default_rng(seed)
    q, k, v = (torch.from_numpy(rng.standard_normal((1, 2, 24, 16)).astype(np.float16)).double() for _ in range(3))
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(torch.from_numpy(np.load(folder / "out.npy")).double(), wanted, atol=4e-3, rtol=4e-3)


def test_a_program_as_json(weft_says):
    code, said, _ = weft_says("run", "libscores", "--program", "scores", *OPERANDS, "--json", "--seed", 1)
    report = json.loads(said)
    assert code == 0 and report["program"] == "scores" and report["seed"] == 1
    (found,) = report["outputs"]
    assert found["shape"] == [1, 2, 24, 16] and found["not_finite"] == 0 and found["least"] < 0 < found["most"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([*OPERANDS[:4], "--arg", "f32[1,2,24,16]=ones"], "elements of fp16 for 'v', but got fp32"),
        ([*OPERANDS[:4], "--arg", "f16[1,2,25,16]=ones"], "'v': expected size N = 24"),
        ([*OPERANDS[:4], "--arg", "f16[1,2,24]=ones"], "'v': expected 4 axes, [B, H, N, 16], but got 3"),
        ([*OPERANDS[:4], "--arg", "f16=1"], "a buffer for 'v', but got 'f16=1'"),
        (OPERANDS[:4], "3 --arg, one for each of q: fp16[B, H, N, 16]"),
        ([*OPERANDS, "--out", "y=y.npy"], "--out NAME=FILE.npy with an output among out, but got 'y=y.npy'"),
        ([*OPERANDS, "--out", "out=/nowhere/y.npy"], "a file .npy in a folder that is there, but got '/nowhere/y.npy'"),
        ([*OPERANDS, "--grid", "1"], "no --grid with --program"),
        ([*OPERANDS, "--kernel", "x"], "either --kernel or --program"),
    ],
)
def test_programs_are_checked(weft_says, given, expected):
    code, _, wrong = weft_says("run", "libscores", "--program", "scores", *given)
    assert code == 1 and "expected" in wrong and expected in wrong, wrong


def test_which_to_run(weft_says):
    assert "expected --program, or --kernel: libscores has the programs scores" in weft_says("run", "libscores")[2]
    assert "a program of libscores, but got 'x'; it has scores" in weft_says("run", "libscores", "--program", "x")[2]
    assert "a kernel of libadd, but got 'x'; it has add" in weft_says("run", "libadd", "--kernel", "x")[2]


# ---- Output


def test_piped_output_is_whole(folder):
    """What goes to a pipe or a file is as wide as it is, whatever COLUMNS says of the terminal."""
    done = subprocess.run(
        command("inspect", folder / "libscores", "--quick"),
        capture_output=True, text=True, env={**ENVIRONMENT, "COLUMNS": "40"}, check=True,
    )  # fmt: skip
    library = weft.load(folder / "libscores")
    lines = done.stdout.splitlines()
    assert "…" not in done.stdout
    for kernel in library.kernels.values():
        assert any(line.startswith(f"{kernel.name}(a0: ") and line.endswith(")") for line in lines)
    for program in library.programs.values():
        for variant in program.variants:
            for launch in variant["launches"]:
                assert any(launch["kernel"] in line and "│" in line for line in lines)


def test_a_reader_that_leaves(folder):
    """As `weft inspect LIBRARY | head -c 1` is: no words, and the exit code of a tool that SIGPIPE ended."""
    for arguments in (("inspect", folder / "libscores", "--quick"), ("inspect", folder / "libscores", "--json")):
        process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_the_ptx_of_a_kernel_as_json(weft_says):
    whole = weft_says("inspect", "libscores", "--quick", "--json")[1]
    row = json.loads(whole)["variants"][1]
    code, told, _ = weft_says("inspect", "libscores", "--ptx", row["kernel"], "--json")
    found = json.loads(told)
    assert code == 0 and (found["kernel"], found["variant"]) == (row["kernel"], 0)
    assert found["ptx"] == weft_says("inspect", "libscores", "--ptx", row["kernel"])[1].removesuffix("\n")


def test_figures_are_kept(weft_says, folder, monkeypatch, tmp_path):
    from weft.compiler import ptxas

    if ptxas.find_tool("ptxas") is None:
        pytest.skip("ptxas is not here")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    code, first, _ = weft_says("inspect", "libscores", "--json", "--resources")
    monkeypatch.setattr(ptxas, "_assembled", None)  # not asked again
    code, second, _ = weft_says("inspect", "libscores", "--json")
    assert code == 0 and first == second
    rows = json.loads(second)["variants"]
    kernel = weft.load("libscores").kernels[rows[1]["kernel"]]
    monkeypatch.undo()
    wanted = ptxas.assemble(kernel.ptx(), rows[1]["target"], rows[1]["entry"])
    assert (rows[1]["registers"], rows[1]["instructions"]) == (wanted.registers, wanted.instruction_count)
    assert all(row["registers"] > 0 and row["instructions"] > 0 for row in rows)
    monkeypatch.chdir(folder)
    quick = json.loads(weft_says("inspect", "libscores", "--json", "--quick")[1])["variants"]
    assert all(row["registers"] is None for row in quick)
    monkeypatch.setattr("weft.cli.inspect._IN_A_MOMENT", 0)
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "empty"))
    code, said, _ = weft_says("inspect", "libscores")
    assert code == 0 and "--resources asks ptxas" in said


# ---- Wrong files and wrong options

FILES = (
    "nothing", "directory", "empty", "binary", "empty.npy", "binary.npy", "pickled.npy", "objects.npy", "x.npy",
    "empty.py", "binary.py", "raises.py", "exits.py", "broken.py", "scores.py", "scores.py:x", "scores.py:",
    "binary.ptx", "libadd", "libscores", "libadd/manifest.json", "/dev/null", "unreadable", "", ".", "a\nb", "\udcff",
    "a" * 300,
)  # fmt: skip
COMMANDS = {
    "compile": lambda file: ("compile", file, "-o", "made"),
    "compile onto": lambda file: ("compile", "scores.py", "-o", file or "directory"),
    "inspect": lambda file: ("inspect", file, "--quick"),
    "inspect --ptx": lambda file: ("inspect", "libadd", "--quick", "--ptx", file or "x"),
    "run": lambda file: ("run", file, "--arg", "i32=1"),
    "run --arg": lambda file: ("run", "libadd", *NUMBERS, "--arg", file, "--arg", "i32=1000"),
    "sim": lambda file: ("sim", file, "--entry", "k", "--block", "1"),
    "draw": lambda file: ("draw", file or "x", "-o", "a.svg"),
    "draw NAME": lambda file: ("draw", f"{file}:f", "-o", "a.svg"),
    "draw into": lambda file: ("draw", "causal()", "-o", file),
    "explain": lambda file: ("explain", file, "--sizes", "B=1,H=1"),
    "export": lambda file: ("export", "--hf-kernel", file, "a-kernel"),
    "export onto": lambda file: ("export", "--hf-kernel", "libscores", file, "--name", "scores"),
    "tune": lambda file: ("tune", file, "--limit", "1", "--sizes", "B=1"),
    "tune --library": lambda file: ("tune", "--library", file, "--sizes", "B=1"),
    "tune --input": lambda file: ("tune", "scores.py", "--input", f"q={file}", "--sizes", "B=1"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_files(weft_says, folder, name, tmp_path, monkeypatch):
    """No command ends in a traceback, whatever file it is given: main lets none out."""
    place = shutil.copytree(folder, tmp_path / "files")
    monkeypatch.chdir(place)
    kept = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    (place / "unreadable").touch(mode=0)
    for file in FILES:
        code, said, wrong = weft_says(*COMMANDS[name](file))
        assert code in (0, 1, 2), (ascii(file), code)
        assert code == 0 or (wrong.strip() and not said.strip()), (ascii(file), said, wrong)
        assert "Traceback" not in wrong and "_native" not in wrong, (ascii(file), wrong)
        if code == 1:
            words = wrong.removeprefix(f"weft {name.split()[0]}: ").strip()
            assert len(words) > 12, (ascii(file), wrong)
    for path, content in kept.items():
        if path.parent.name not in ("libscores", "libadd"):
            assert path.read_bytes() == content, path  # only libraries are written over


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        ([], 2, "the following arguments are required: COMMAND"),
        (["frobnicate"], 2, "invalid choice: 'frobnicate'"),
        (["run"], 2, "required: DIR"),
        (["run", "libadd", "--grid", "0"], 2, "expected one to three positive sizes by comma, but got '0'"),
        (["run", "libadd", "--grid", "1,2,3,4"], 2, "expected one to three positive sizes"),
        (["run", "libadd", "--seed", "x"], 2, "invalid int value: 'x'"),
        (["run", "libadd", "--seed", "-1"], 1, "expected --seed to be at least 0, but got -1"),
        (["run", "libadd", "--arg", "q32=1"], 1, "expected a type among i1 i8"),
        (["run", "libadd", "--arg", "f32[2]"], 1, "expected an argument like i32=5"),
        (["run", "libadd", "--arg", "f32[2]=many"], 1, "expected a number of type f64, but got 'many'"),
        (["run", "libadd", "--arg", "i8=300"], 1, "expected a number of type i8, but got '300'"),
        (["run", "libadd", "--arg", "f32[99999999999999]=zeros"], 1, "expected a buffer that memory holds"),
        (["run", "libadd", "--arg", "f32[9999999999,9999999999,9999999]=zeros"], 1, "expected a"),
        (["run", "libadd", "--arg", "f32[2]=zeros:z.txt"], 1, "expected a file .npy in a folder that is there"),
        (["run", "libadd", "--device", "tpu", *NUMBERS, *NUMBERS[:2], "--arg", "i32=1"], 1, "expected"),
        (["export", "libadd", "made"], 2, "required: --hf-kernel"),
        (["export", "--hf-kernel", "libadd", "made"], 1, "expected programs in libadd, but got kernels alone"),
        (["export", "--hf-kernel", "libscores", "Made"], 1, "but got 'Made': name it by --name"),
        (["export", "--hf-kernel", "libscores", "made", "--version", "0"], 1, "at least 1, but got 0"),
        (["draw", "causal(", "-o", "a.svg"], 1, "expected an expression over weft's names, but got 'causal('"),
        (["draw", "1 / 0", "-o", "a.svg"], 1, "expected an expression over weft's names, but got '1 / 0': division"),
        (["draw", "window(1.5, 0)", "-o", "a.svg"], 1, "<WHAT>:1:1: error: expected 'left' of weft.window"),
        (["draw", "causal()", "-o", "a.bmp"], 1, "weft draw: error: expected a path that ends in .svg or .png, but"),
        (["draw", "causal()", "-o", "a.svg", "--block", "x"], 1, "expected --block to be one or two positive sizes"),
        (["draw", "causal()", "-o", "a.svg", "-n", "-5"], 1, "expected -n to be at least 1, but got -5"),
        (["inspect", "libadd", "--ptx", "add:7"], 1, "expected a variant of 'add' from 0 to 1, but got '7'"),
        (["inspect", "libadd", "--ptx", "add:x"], 1, "expected a variant of 'add' from 0 to 1, but got 'x'"),
        (["explain", "scores.py", "--sizes", "B"], 1, "expected sizes such as B=1,N=1024, but got 'B'"),
        (
            ["explain", "scores.py", "--sizes", "B=1"],
            1,
            "sizes H, N of 'scores', but got B; on the command line, --sizes",
        ),
        (["explain", "scores.py", "--sizes", "B=1,H=1,N=64,K=3"], 1, "but got 'K'"),
        (["explain", "scores.py", "--why", "--sizes", "K=3"], 1, "but got 'K'"),
        (["explain", "scores.py", "--num-warps", "8"], 1, "expected '--num-warps' with a kernel alone"),
        (["explain", "scores.py", "--stage", "x"], 1, "expected a stage among"),
        (
            ["explain", "scores.py", "--target", "sm_1"],
            1,
            "unknown target 'sm_1'; known are 'sm_80' (A100), 'sm_90a' (H100, H200)",
        ),
        (["explain", "scores.py", "--signature", "q:fp99[B]"], 1, "expected"),
        (["compile", "scores.py", "-o", "made", "--num-warps", "3"], 1, "expected no --num-warps, which is of kernels"),
        (["tune"], 2, "expected either FILE.py or --library DIR"),
        (["tune", "scores.py", "--candidate", "forward=1"], 1, "expected"),
        (["tune", "scores.py", "--candidate", "sideways=1x1x1x1"], 1, "expected a role among forward, backward.query"),
        (["tune", "scores.py", "--candidate", "backward.values=1x1x1x1"], 1, "expected the sizes B, H, N of"),
        (
            ["sim", "binary.ptx", "--entry", "k", "--block", "1", "--shared", "-1"],
            1,
            "expected 'shared' to be from 0 to",
        ),
        (["sim", "binary.ptx", "--entry", "k", "--block", "1", "--limit", "-1"], 1, "expected 'limit' to be from 0 to"),
        (["sim", "binary.ptx", "--entry", "k", "--block", "1", "--schedules", "0"], 1, "'schedules' to be from 1 to"),
        (["tune", "scores.py", "--sizes", "B=1,H=1,N=64,Z=3"], 1, "expected sizes of 'scores', B, H, N, but got 'Z'"),
        (["tune", "scores.py", "--input", "q"], 1, "expected an input such as lengths=lengths.npy, but got 'q'"),
        (["sim", "binary.ptx", "--entry", "k", "--block", "1", "--seed", "-1"], 1, "expected --seed to be at least 0"),
        (["sim", "binary.ptx", "--entry", "k", "--block", "1", "--cluster", "0"], 2, "expected one to three positive"),
        (["sim", "binary.ptx", "--entry", "k", "--block", "0"], 2, "expected one to three positive sizes"),
        (["sim", "binary.ptx", "--entry", "k", "--block", "1", "--gpu", "x"], 1, "expected"),
    ],
)
def test_wrong_options(weft_says, arguments, code, expected):
    found, _, wrong = weft_says(*arguments)
    assert found == code and expected in wrong, (found, wrong)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda launch: launch(1.5, 1), "expected one to three integers, but got 1.5"),
        (lambda launch: launch(None, 1), "expected one to three integers, but got None"),
        (lambda launch: launch(1, 1, shared=-1), "expected 'shared' to be from 0 to 4294967295, but got -1"),
        (lambda launch: launch(1, 1, checks=3), "expected 'checks' to be text, such as 'all', but got 3"),
        (lambda launch: launch(1, 1, seed="x"), "expected 'seed' to be an integer, but got 'x'"),
        (lambda launch: launch(1, 1, sample=2**40), "expected 'sample' to be from 0 to"),
        (lambda launch: weft.draw(weft.causal(), "a.svg", n="x"), "expected 'n' to be an integer, but got 'x'"),
        (lambda launch: weft.draw(weft.causal(), "a.svg", head="x"), "expected 'head' to be an integer, but got 'x'"),
        (lambda launch: weft.draw(np.ones((3, 3)) * 1j, "a.svg"), "expected a matrix of real numbers to draw, but got"),
        (lambda launch: weft.tuning.tune(None, candidates=3), "expected 'candidates' to be a dict"),
        (lambda launch: weft.tuning.tune(None, candidates={"x": []}), "expected a role among forward, backward.query"),
        (lambda launch: weft.tuning.tune(None, limit=0), "expected 'limit' to be an integer of at least 1, but got 0"),
    ],
)
def test_wrong_arguments_from_python(call, expected):
    import weft.simulator
    import weft.tuning

    text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(){ret;}\n"
    with pytest.raises((weft.Error, TypeError, ValueError), match=re.escape(expected)):
        call(lambda grid, block, **options: weft.simulator.launch(text, "k", grid, block, [], **options))


# ---- Set-up


def fake_tree(place, environment):
    """tools/setup.sh in a folder of its own, beside a Python that installs nothing."""
    (place / "tools").mkdir(parents=True)
    for name in ("setup.sh", "requirements.txt"):
        shutil.copy(ROOT / "tools" / name, place / "tools" / name)
    shutil.copytree(ROOT / "python" / "weft", place / "python" / "weft", symlinks=True)
    site, binaries = place / ".venv" / "site", place / ".venv" / "bin"
    site.mkdir(parents=True)
    binaries.mkdir()
    (binaries / "python").write_text(
        f"""#!/bin/sh
case "$*" in
*"pip install"*) exit 0 ;;
*purelib*) echo "{site}" ;;
*) PYTHONPATH="$(cat "{site}/weft.pth")" exec {sys.executable} "$@" ;;
esac
"""
    )
    (binaries / "python").chmod(0o755)
    return subprocess.run(
        [place / "tools" / "setup.sh"], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def path_without(place, *names):
    """A folder for PATH that has every command there is but those."""
    place.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for file in pathlib.Path(folder).glob("*") if folder else ():
            if file.name not in names and not (place / file.name).exists():
                (place / file.name).symlink_to(file)
    return str(place)


def test_a_folder_with_a_space(tmp_path):
    """And one without apt-get, in which everything is installed."""
    path = path_without(tmp_path / "bin", "apt-get")
    place = tmp_path / "a folder" / "with 'it"
    done = fake_tree(place, {"PATH": path})
    assert done.returncode == 0, done.stderr
    said = subprocess.run([place / ".venv/bin/weft", "--help"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("usage: weft ")
    (tmp_path / "linked").symlink_to(place / ".venv/bin/weft")
    (tmp_path / "types.py").write_text("raise SystemExit('a file of the user is not Python\\'s own')")
    linked = subprocess.run(
        [tmp_path / "linked", "draw", "causal()", "-o", "a b.svg"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert linked.returncode == 0 and (tmp_path / "a b.svg").exists(), linked.stderr


def test_what_is_missing_is_said(tmp_path):
    path = path_without(tmp_path / "bin", "apt-get", "ninja", "ccache")
    done = fake_tree(tmp_path / "tree", {"PATH": path})
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"setup: expected, since there is no apt-get to install it: the command {name}" for name in ("ccache", "ninja")
    ]


def test_python_runs_the_package():
    ran = subprocess.run([sys.executable, "-m", "weft", "--version"], env=ENVIRONMENT, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.split()[0], ran.stderr) == (0, "weft", "")


def test_options_of_kernels_are_not_of_programs(weft_says, folder, tmp_path):
    """An option that says nothing of what is compiled is refused, not passed over."""
    (tmp_path / "programs").mkdir()
    shutil.copy(folder / "scores.py", tmp_path / "programs")
    kernel = tmp_path / "kernel.py"
    kernel.write_text(
        "import weft\nimport weft.language as wl\n\n\n@weft.jit\ndef one(x, n: wl.constexpr):\n    wl.store(x, n)\n"
    )
    of_kernels = (("--num-warps", "8"), ("--num-stages", "2"), ("--cluster", "2"), ("--grid", "4"))
    signature = ("--signature", "x:*i32, n=1")
    for file, options, more, word in (
        (folder / "scores.py", of_kernels, (), "kernels: 'scores' is a program"),
        (tmp_path / "programs", of_kernels, (), "kernels: what a directory compiles is a program"),
        (kernel, (("--forward-only",), ("--tangents",)), signature, "programs: 'one' is a kernel"),
    ):
        for option in options:
            code, _, said = weft_says("compile", file, "-o", tmp_path / "lib", *more, *option)
            assert code == 1 and f"expected no {option[0]}, which is of {word}" in said, said
    with pytest.raises(TypeError, match="expected no 'num_warps' and 'num_stages' of a program"):
        weft.compile(weft.program(lambda q: q), num_warps=8, out=tmp_path / "lib")
    with pytest.raises(TypeError, match="expected no 'cluster' of a program, whose schedules are chosen, but got 2"):
        weft.compile(weft.program(lambda q: q), cluster=2, out=tmp_path / "lib")
    assert not (tmp_path / "lib").exists()


def test_targets_are_compiled_once(weft_says, folder, tmp_path):
    code, _, said = weft_says(
        "compile", folder / "scores.py", "-o", tmp_path / "lib", "--target", "sm_80, sm_90a,sm_80"
    )
    assert code == 0, said
    plans = weft.load(tmp_path / "lib").program("scores").variants
    assert sorted(plan["target"] for plan in plans) == ["sm_80", "sm_90a"]
    code, _, said = weft_says("compile", folder / "scores.py", "-o", tmp_path / "lib", "--target", ",")
    assert code == 1 and "expected the name of a target, such as 'sm_80', or several, but got ','" in said, said


@pytest.mark.parametrize("name", ["os.py", "weft.py", "json.py", "torch.py", "a b.py", "1st.py", "c:d.py"])
def test_files_of_any_name(tmp_path, name):
    """A file takes the place of no other module, and a colon may be part of its name."""
    (tmp_path / name).write_text(SCORES)
    for text in (name, f"{name}:scores"):
        command = [sys.executable, "-m", "weft", "compile", text, "-o", "lib", "--forward-only"]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=ENVIRONMENT | {"PYTHONSAFEPATH": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert list(weft.load(tmp_path / "lib").programs) == ["scores"]


def test_names_that_libraries_have_not(weft_says, tmp_path):
    """PTX, C and files have ASCII's names: a kernel is launched by any, and refused by its name in a library."""
    program = SCORES.replace("def scores", "def größe")
    kernel = "import weft\nimport weft.language as wl\n@weft.jit\ndef größe(x, n: wl.constexpr):\n    wl.store(x, n)\n"
    for text, more, expected in (
        (program, (), "at most 160 of ASCII's letters, digits and '_', as in libraries, but got 'größe'"),
        (SCORES.replace("v", "clé"), (), "name of an argument"),
        (SCORES.replace("scores", "s" * 161), (), "name of a program to be at most 160"),
        (kernel, ("--signature", "x:*i32, n=1"), "name of a kernel to be at most 160"),
    ):  # fmt: skip
        (tmp_path / "file.py").write_text(text)
        code, _, said = weft_says("compile", tmp_path / "file.py", "-o", tmp_path / "lib", *more)
        assert code == 1 and expected in said, said
    found = {"__name__": "found"}
    (tmp_path / "kernel.py").write_text(kernel)
    exec(compile(kernel, str(tmp_path / "kernel.py"), "exec"), found)
    x = np.zeros(1, np.int32)
    found["größe"][(1,)](x, n=7)
    assert x[0] == 7


@pytest.mark.parametrize(
    "command",
    [
        ["run", "libscores", "--program", "scores", *["--arg", "f16[1,2,900,16]=ones"] * 3, "--out", "out=small/y.npy"],
        ["draw", "causal()", "-n", "512", "-o", "small/a.svg"],
        ["draw", "causal()", "-n", "512", "-o", "small/a.png"],
        ["compile", "scores.py", "-o", "small/lib"],
        ["export", "--hf-kernel", "libscores", "small/kernel"],
    ],
    ids=lambda command: f"{command[0]} {command[-1]}",
)
def test_a_full_disk(folder, command):
    """What does not fit is not there afterwards, in part neither, and the error says of which file it was; what was
    there before is as it was."""
    (folder / "small").mkdir(exist_ok=True)
    target = folder / command[-1].partition("=")[2] if "=" in command[-1] else folder / command[-1]
    if "." in target.name:
        target.write_text("what was there before")
    before = sorted(folder.joinpath("small").rglob("*"))
    limit = 4096  # bytes of a file: further writes fail, as on a full disk
    code = (
        "import resource, signal, sys; from weft.cli.__main__ import main; "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); sys.exit(main(sys.argv[1:]))"
    )
    environment = ENVIRONMENT | {"WEFT_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(rf"cannot (use|write) '?[^']*{re.escape(target.name)}", done.stderr), done.stderr
    assert sorted(folder.joinpath("small").rglob("*")) == before
    assert "." not in target.name or target.read_text() == "what was there before"


def test_files_are_whole_or_not_there(tmp_path):
    """A file is what it was until it is written; links lead where they did; a device stays one."""
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match="No space left") as caught, folders.new_file(tmp_path / "link") as file:
        file.write_text("half of")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "link") and (tmp_path / "real").read_text() == "before"
    with folders.new_file(tmp_path / "link") as file:
        file.write_text("after")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "after"
    with folders.new_file("/dev/null") as file:
        file.write_text("nowhere")
    assert pathlib.Path("/dev/null").is_char_device()
    lost = tmp_path / "nowhere/x.svg"
    with pytest.raises(FileNotFoundError, match=r"nowhere/x\.svg"), folders.new_file(lost) as file:
        file.write_text("")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_a_source_outside_of_its_library_is_not_read(weft_says, folder, tmp_path):
    """A library names its programs' IR, which the runtime ignores: it is one of the library's parts."""
    library = shutil.copytree(folder / "libscores", tmp_path / "lib")
    manifest = json.loads((library / "manifest.json").read_text())
    (tmp_path / "elsewhere.mlir").write_text("no IR")
    for source in ({"ir": "../elsewhere.mlir", "differentiate": True}, {"ir": 3}, 7, ["scores.attn.mlir"]):
        manifest["programs"][0]["source"] = source
        files = {part["file"]: (library / part["file"]).read_bytes() for part in manifest["parts"]}
        shutil.rmtree(library)
        weft.runtime.write_library(library, manifest["kernels"], files, manifest["programs"])
        code, _, said = weft_says("tune", "--library", library, "--sizes", "B=1,H=1,N=32")
        assert code == 1 and "expected the 'source' of 'scores' to name a part of" in said, said


def test_options_of_a_gpu(weft_says):
    code, _, said = weft_says("doctor", "--only", "matmul")
    assert code == 1 and "expected --gpu, which --only is of" in said
