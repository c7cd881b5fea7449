# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Machine code beside PTX: made where ptxas is, refused where it is stale or foreign, shown, kept through tuning."""

import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest
import weft
from runtime_samples import TYPES, vector_add_ptx
from test_runtime_cuda import ROOT, fake_driver  # noqa: F401 (a fixture)
from weft.cli.__main__ import main
from weft.compiler import cubins, ptxas
from weft.runtime.library import write_library

needs_ptxas = pytest.mark.skipif(ptxas.find_tool("ptxas") is None, reason="needs ptxas")

PROGRAM = """
import weft

@weft.program
def double(x: "fp16[B,N,64]:16"):
    return 2 * x
"""


@weft.jit
def add(x, y, z, n, BLOCK: weft.language.constexpr):
    i = weft.language.program_id(0) * BLOCK + weft.language.arange(0, BLOCK)
    here = i < n
    weft.language.store(z + i, weft.language.load(x + i, here) + weft.language.load(y + i, here), here)


def signature() -> str:
    return "x:*fp32:16, y:*fp32:16, z:*fp32:16, n:i32, BLOCK=128"


def sums(library) -> bool:
    x, z = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    library.launch("add", (3,), x, x, z, 300)
    return bool((z == 2 * x).all())


@needs_ptxas
def test_a_kernels_library(tmp_path):
    library = weft.compile(add, "sm_80,sm_90a", signature(), tmp_path / "lib", cubin="sm_80, sm_86, sm_90a")
    found = {(each["target"], each["ptx"], each["file"]) for each in library.cubins}
    assert found == {
        ("sm_80", "add.sm_80.ptx", "add.sm_80.cubin"),
        ("sm_86", "add.sm_80.ptx", "add.sm_80.sm_86.cubin"),
        ("sm_90a", "add.sm_90a.ptx", "add.sm_90a.cubin"),
    }
    for each in library.cubins:
        text = (tmp_path / "lib" / each["ptx"]).read_bytes()
        assert each["ptx_sha256"] == hashlib.sha256(text).hexdigest()
        assert (tmp_path / "lib" / each["file"]).read_bytes()[:4] == b"\x7fELF"
    assert sums(library)  # the simulator runs the PTX
    again = weft.compile(add, "sm_80", signature(), tmp_path / "again", cubin=True)
    assert [each["target"] for each in again.cubins] == ["sm_80"]
    same = [(tmp_path / name / "add.sm_80.cubin").read_bytes() for name in ("lib", "again")]
    assert same[0] == same[1]  # the same PTX gives the same bytes
    assert weft.compile(add, "sm_80", signature(), tmp_path / "none").cubins == []


@needs_ptxas
def test_what_is_asked_for(tmp_path):
    with pytest.raises(weft.Error, match="PTX for sm_80 can be assembled for, but got 'sm_75' for a cubin"):
        weft.compile(add, "sm_80", signature(), tmp_path / "lib", cubin="sm_75")
    with pytest.raises(ValueError, match="the name of a target, such as 'sm_80', for 'cubin', but got '80'"):
        weft.compile(add, "sm_80", signature(), tmp_path / "lib", cubin="80")
    with pytest.raises(TypeError, match="expected 'cubin' to be a truth or names of targets, but got 3"):
        weft.compile(add, "sm_80", signature(), tmp_path / "lib", cubin=3)
    assert not (tmp_path / "lib").exists()


def test_without_ptxas(tmp_path, monkeypatch):
    monkeypatch.setattr(ptxas, "find_tool", lambda name: None)
    with pytest.raises(weft.Error, match=r"expected ptxas on PATH, .* but found none"):
        weft.compile(add, "sm_80", signature(), tmp_path / "lib", cubin=True)
    assert not (tmp_path / "lib").exists()


@needs_ptxas
def test_the_commands(tmp_path, capsys):
    file, out = tmp_path / "double.py", tmp_path / "lib"
    file.write_text(PROGRAM)
    assert main(["compile", str(file), "-o", str(out), "--target", "sm_80,sm_90a", "--cubin"]) == 0
    assert {each["target"] for each in weft.load(out).cubins} == {"sm_80", "sm_90a"}
    capsys.readouterr()
    assert main(["inspect", str(out), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["variants"]
    assert all(row["cubins"] == [row["target"]] for row in rows)
    assert main(["inspect", str(out), "--quick"]) == 0
    assert "cubins" in capsys.readouterr().out
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(file, folder)
    arguments = ["compile", str(folder), "-o", str(out), "--target", "sm_80", "--cubin", "sm_86", "--forward-only"]
    assert main(arguments) == 0
    assert [each["target"] for each in weft.load(out).cubins] == ["sm_86"]
    x = np.random.default_rng(0).standard_normal((1, 3, 64)).astype(np.float16)
    assert np.array_equal(weft.load(out).run("double", x), 2 * x)


@needs_ptxas
def test_written_anew(tmp_path, monkeypatch):
    """A library that is tuned has cubins of its new PTX, or none and a word about it."""
    from weft.tuning.libraries import rewrite, sources

    file, out = tmp_path / "double.py", tmp_path / "lib"
    file.write_text(PROGRAM)
    assert main(["compile", str(file), "-o", str(out), "--target", "sm_80", "--cubin", "sm_80,sm_86"]) == 0
    library = weft.load(out)
    rewrite(library, sources(library))
    assert [each["target"] for each in weft.load(out).cubins] == ["sm_80", "sm_86"]
    monkeypatch.setattr(ptxas, "find_tool", lambda name: None)
    with pytest.warns(UserWarning, match="is written without its cubins"):
        rewrite(weft.load(out), sources(library))
    assert weft.load(out).cubins == []


def manifest(cubin: dict[str, str]) -> tuple[list, list]:
    arguments = [{"name": f"a{i}", "type": kind} for i, kind in enumerate(TYPES)]
    variant = {"target": "sm_80", "ptx": "add.ptx", "entry": "add", "num_warps": 4, "shared_bytes": 0}
    return [{"name": "add", "arguments": arguments, "variants": [variant]}], [cubin]


def written(folder: pathlib.Path, code: bytes, **changes: str) -> None:
    ptx = vector_add_ptx()
    digest = hashlib.sha256(ptx.encode()).hexdigest()
    kernels, found = manifest(
        {"file": "add.cubin", "target": "sm_80", "ptx": "add.ptx", "ptx_sha256": digest} | changes
    )
    write_library(folder, kernels, {"add.ptx": ptx, "add.cubin": code}, cubins=found)


def assembler(version: str) -> str | None:
    """ptxas of CUDA 12 and of CUDA 13 write different headers."""
    import triton

    triton_folder = pathlib.Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    for path in ("/usr/local/cuda/bin/ptxas", *map(str, triton_folder.glob("ptxas*"))):
        found = shutil.which(path)
        if (
            found
            and f"release {version}." in subprocess.run([found, "--version"], capture_output=True, text=True).stdout
        ):
            return found
    return None


@pytest.mark.parametrize("version", ["12", "13"])
@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_what_ptxas_writes_is_read(tmp_path, version, target):
    tool = assembler(version)
    if tool is None:
        pytest.skip(f"needs ptxas of CUDA {version}")
    (tmp_path / "add.ptx").write_text(vector_add_ptx())
    command = [tool, f"-arch={target}", "add.ptx", "-o", "add.cubin"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    code = (tmp_path / "add.cubin").read_bytes()
    written(tmp_path / "lib", code, target=target)
    assert weft.load(tmp_path / "lib").cubins[0]["target"] == target
    with pytest.raises(weft.runtime.Error, match=f"expected machine code for sm_110, but got some for {target}"):
        written(tmp_path / "other", code, target="sm_110")


@needs_ptxas
def test_stale_and_foreign_ones_are_refused(tmp_path):
    code = ptxas.cubin(vector_add_ptx(), "sm_80")
    written(tmp_path / "lib", code)
    assert sums(weft.load(tmp_path / "lib"))
    with pytest.raises(weft.runtime.Error, match=r"stale: the cubin was assembled of another PTX than 'add\.ptx'"):
        written(tmp_path / "stale", code, ptx_sha256="0" * 64)
    with pytest.raises(weft.runtime.Error, match="no ELF file"):
        written(tmp_path / "text", b"not machine code")
    with pytest.raises(weft.runtime.Error, match="ELF machine 190, but got machine 62"):
        written(tmp_path / "host", pathlib.Path("/proc/self/exe").resolve().read_bytes()[:4096])
    with pytest.raises(weft.runtime.Error, match=r"expected the machine code of 'add\.ptx', but it has no entry 'add'"):
        written(tmp_path / "other", ptxas.cubin(vector_add_ptx().replace("entry add(", "entry sub("), "sm_80"))


@needs_ptxas
def test_damaged_ones_are_refused_on_disk(tmp_path, seed):
    """Cut short or with a bit changed on disk: the library is refused, and names the file."""
    written(tmp_path / "lib", ptxas.cubin(vector_add_ptx(), "sm_80"))
    file = tmp_path / "lib" / "add.cubin"
    whole, generator = file.read_bytes(), random.Random(seed)
    for _ in range(60):
        damaged = bytearray(whole)
        if generator.random() < 0.5:
            del damaged[generator.randrange(len(whole)) :]
        else:
            damaged[generator.randrange(len(whole))] ^= 1 << generator.randrange(8)
        file.write_bytes(damaged)
        with pytest.raises(weft.runtime.Error, match=r"add\.cubin: (cut short|altered)") as refused:
            weft.load(tmp_path / "lib")
        assert refused.value.status == "corrupt"


@needs_ptxas
def test_damaged_ones_with_digests_put_right(tmp_path, seed):
    """Damage that the digests were taken of: refused by the ELF file's own words, or of no consequence to what runs
    here."""
    code, generator = ptxas.cubin(vector_add_ptx(), "sm_80"), random.Random(seed)
    refused = 0
    for _ in range(150):
        damaged = bytearray(code)
        for _ in range(generator.randint(1, 3)):
            # the headers, at both ends, are where a reader follows numbers
            at = generator.randrange(64) if generator.random() < 0.5 else generator.randrange(len(code))
            damaged[at] ^= 1 << generator.randrange(8)
        if generator.random() < 0.3:
            del damaged[generator.randrange(len(code)) :]
        try:
            written(tmp_path / "lib", bytes(damaged))
        except weft.runtime.Error as error:
            refused += 1
            assert "add.cubin" in str(error), error
        else:
            assert sums(weft.load(tmp_path / "lib"))
    assert 20 < refused < 150


def test_which_ptx_serves_which_cubin():
    assert cubins.serves("sm_80", "sm_80") and cubins.serves("sm_80", "sm_120") and cubins.serves("sm_90a", "sm_90a")
    assert not cubins.serves("sm_90a", "sm_90") and not cubins.serves("sm_86", "sm_80")
    assert not cubins.serves("sm_90a", "sm_100")


ON_CUDA = """
import ctypes
import os
import sys
import numpy as np
import weft

driver = ctypes.CDLL(os.environ["WEFT_LIBCUDA"])
library = weft.load(sys.argv[1])
opened = driver.fakeCudaLoads()
x, z = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
for _ in range(2):
    library.launch("add", (3,), x, x, z, 300)
assert (z == 2 * x).all()
print(opened, driver.fakeCudaLoads(), driver.fakeCudaBinaryLoads())
"""


@needs_ptxas
@pytest.mark.parametrize(("target", "refused", "binaries"), [("sm_80", "", 1), ("sm_80", "209", 0), ("sm_90", "", 0)])
def test_what_a_gpu_loads(fake_driver, tmp_path, target, refused, binaries):  # noqa: F811
    """A cubin for its architecture, unless the driver does not know it; else the PTX. Nothing before the launch."""
    written(tmp_path / "lib", ptxas.cubin(vector_add_ptx(), target), target=target)
    environment = {
        **os.environ,
        "WEFT_LIBCUDA": str(fake_driver),
        "WEFT_DEVICE": "",
        "PYTHONPATH": str(ROOT / "python"),
    }
    if refused:
        environment["FAKE_CUDA_REFUSES"] = refused
    command = [sys.executable, "-c", ON_CUDA, str(tmp_path / "lib")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0", "1", str(binaries)], done.stderr
