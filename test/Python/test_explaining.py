# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What ``weft explain`` says beyond launches: fast paths that were not taken, with reasons at source lines."""

import json
import pathlib
import re
from html.parser import HTMLParser

import pytest
from weft.cli.__main__ import main
from weft.compiler.ptxas import find_tool
from weft.explaining import lines
from weft.explaining.lines import Place
from weft.explaining.why import remarks, table

ROOT = pathlib.Path(__file__).resolve().parents[2]
DECLARED = re.findall(
    r'^WEFT_(REMARK|DECISION)\(\w+, "([\w-]+)", "(\w+)"\)$',
    (ROOT / "compiler/Support/Remarks.def").read_text(),
    re.M,
)

KERNEL = """
import weft
import weft.language as wl

@weft.jit
def scale(x: "*fp32", y: "*fp32:16", N: "i32"):
    at = wl.program_id(0) * 1024 + wl.arange(0, 1024)
    value = wl.load(x + at, mask=at < N)
    wl.store(y + at, 2 * value, mask=at < N)
"""
MATMUL = """
import weft
import weft.language as wl

@weft.jit
def mm(a: "*fp16:16", b: "*fp16:16", c: "*fp16:16", N: "i32:16", K: "i32:16"):
    m = wl.program_id(0) * 64 + wl.arange(0, 64)
    n = wl.program_id(1) * 64 + wl.arange(0, 64)
    k = wl.arange(0, 32)
    acc = wl.zeros((64, 64), wl.float32)
    for i in range(0, K, 32):
        x = wl.load(a + m[:, None] * K + i + k[None, :])
        y = wl.load(b + (i + k[:, None]) * N + n[None, :])
        acc = wl.dot(x, y, acc)
    wl.store(c + m[:, None] * N + n[None, :], acc.to(wl.float16))
"""
PROGRAM = """
import weft

@weft.program
def strided(q: "fp16[B,H,N,64]:16", k: "fp16[B,H,N,64]:16", v: "fp16[B,H,N,64]:16"):
    return weft.softmax(q, k, weft.strided(4)) @ v
"""


def explained(file, capsys, *options):
    assert main(["explain", str(file), "--why", *options]) == 0
    return capsys.readouterr().out


def test_every_remark_is_documented_and_tested():
    """The declared list, the page's table and the lit tests name the same remarks."""
    page = (ROOT / "docs" / "Explain.md").read_text()
    assert re.findall(r"^\| `([\w-]+)` \| (\w+) \|", page, re.M) == [(name, category) for _, name, category in DECLARED]
    tests = " ".join(path.read_text() for path in (ROOT / "test" / "Remarks").glob("*.mlir"))
    for kind, name, category in DECLARED:
        assert f"[{'Missed' if kind == 'REMARK' else 'Analysis'}] {name} | Category:{category} |" in tests, name


def test_why_of_a_kernel(tmp_path, capsys):
    file = tmp_path / "scale.py"
    file.write_text(KERNEL)
    said = explained(file, capsys)
    assert said.startswith(
        "scale.py:8    value = wl.load(x + at, mask=at < N)\n  vector-width: a thread accesses 1 of the 4"
    )
    found = json.loads(explained(file, capsys, "--json"))
    assert [(each["name"], each["line"], each["functions"]) for each in found] == [
        ("vector-width", 8, ["scale"]),
        ("vector-width", 9, ["scale"]),
    ]
    file.write_text(KERNEL.replace('"*fp32"', '"*fp32:16"').replace('"i32"', '"i32:16"'))
    assert explained(file, capsys) == "every fast path was taken\n"


def test_decisions_of_a_kernel(tmp_path, capsys):
    """What was chosen, by line, also where --why has nothing to say."""
    file = tmp_path / "mm.py"
    file.write_text(MATMUL)
    assert explained(file, capsys) == "every fast path was taken\n"
    assert main(["explain", str(file), "--decisions", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    lines = {name: {each["line"] for each in found if each["name"] == name} for name in {f["name"] for f in found}}
    assert lines["copies-ahead"] == {12, 13} and lines["shared-memory"] >= {6, 12, 13, 15}
    assert lines["conversion"] == {15} and lines["layout"] >= {12, 13, 14, 15}
    said = {(each["name"], each["line"]): each["message"] for each in found}
    store = said["layout", 15]
    cost, least = re.fullmatch(r".* are about (\d+) in all; the next best, .*, (\d+)", store).groups()
    assert int(cost) < int(least)
    # Bytes of what lies in shared memory are those of the kernel's map, and inside of it.
    total = int(re.match(r"a block takes (\d+) of", said["shared-memory", 6])[1])
    ring = re.match(r"3 stages of 64x32xf16 at byte 0: 12288 bytes, a stage every 8192,", said["shared-memory", 12])
    assert ring and total == 3 * 8192
    assert said["access", 15] == "a thread stores 64x64xf16 by 4 instructions of 16 bytes"
    # The same for people, and nothing of it where it is not asked for.
    assert main(["explain", str(file), "--decisions"]) == 0
    assert "mm.py:15    wl.store(" in capsys.readouterr().out
    assert "layout" not in explained(file, capsys, "--json")


def test_decisions_of_a_kernel_without_tensors(tmp_path, capsys):
    file = tmp_path / "one.py"
    file.write_text(KERNEL.split("def ")[0] + 'def one(x: "*fp32"):\n    wl.store(x, 1.0)\n')
    assert main(["explain", str(file), "--decisions"]) == 0
    assert capsys.readouterr().out == "no tensors\n"


def test_why_of_a_program(tmp_path, capsys):
    file = tmp_path / "strided.py"
    file.write_text(PROGRAM)
    found = json.loads(explained(file, capsys, "--json"))
    assert {each["name"] for each in found} >= {"block-formulas", "one-pass-backward"}
    assert {(pathlib.Path(each["file"]), each["line"]) for each in found} == {(file, 6)}
    assert "#attn.strided<4>" in explained(file, capsys, "--forward-only")


def test_what_kernels_are_told_alike_is_one():
    def each(function, line=3):
        return {"name": "ldmatrix", "category": "products", "message": "m", "file": "f.py", "line": line, "column": 1,
                "function": function}  # fmt: skip

    found = remarks({"remarks": [each("b", 9), each("a"), each("b"), each("a")]})
    assert [(one.line, one.functions) for one in found] == [(3, ("a", "b")), (9, ("b",))]
    assert table(found) == "f.py:3\n  ldmatrix: m (a, b)\n\nf.py:9\n  ldmatrix: m (b)"
    assert table([]) == "every fast path was taken"


def test_a_kernel_has_launches_of_its_own_choosing(tmp_path, capsys):
    (tmp_path / "scale.py").write_text(KERNEL)
    assert main(["explain", str(tmp_path / "scale.py")]) == 1
    assert "expected one program in" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--num-warps", "--num-stages"])
def test_options_of_a_kernel(tmp_path, capsys, option):
    (tmp_path / "scale.py").write_text(KERNEL)
    assert main(["explain", str(tmp_path / "scale.py"), "--why", option, "0"]) == 1


# ---- Lines and where they come from

IR = """
#loc = loc("/k.py":3:0)
#loc1 = loc(unknown)
module {
  func.func @k(%x: i32 loc("/k.py":3:6), %y: i32 loc(unknown)) {
    %0 = arith.addi %x, %y : i32 loc(#loc2)
    %1 = tile.call "loc(1)" : i32 loc(callsite("/helper.py":9:2 at "/k.py":5:4))
    "tile.loc(2)"() : () -> () loc(#loc1)
    return loc(callsite(#loc2 at #loc))
  } loc(#loc)
} loc(#loc1)
#loc2 = loc(fused["/k.py":4:8, "/k.py":5:8])
"""
PTX = """.target sm_80
.visible .entry k()
{
\t.reg .b32 \t%r<2>;
\t.loc\t1 7 0
$L__tmp0:
\tmov.u32 \t%r1, 1;
\t.loc\t2 8 4, function_name $L__info_string0, inlined_at 1 7 0
\t@%p1 bra \t$L__BB0_1;
$L__BB0_1:
\tret;
}
\t.file\t1 "/k.py"
\t.file\t2 "/lib" "helper.py"
\t.section\t.debug_abbrev
\t{
\t}
"""
SASS = """k:
.text.k:
\t//## File "/k.py", line 7
        /*0000*/                   S2R R1, SR_TID.X ;
\t//## File "/lib/helper.py", line 8 inlined at "/k.py", line 7
\t//## File "/k.py", line 7
        /*0010*/               @P0 EXIT ;                       /* 0x0 */
.L_x_0:
        /*0020*/                   BRA `(.L_x_0);
"""


def test_lines_of_ir():
    found = lines.of_ir(IR)
    assert not any("loc(#" in line.text or '"/k.py"' in line.text for line in found)
    assert [(line.text.strip(), line.place) for line in found if line.text] == [
        ("module {", None),
        ("func.func @k(%x: i32, %y: i32) {", None),
        ("%0 = arith.addi %x, %y : i32", Place("/k.py", 4)),
        ('%1 = tile.call "loc(1)" : i32', Place("/helper.py", 9)),
        ('"tile.loc(2)"() : () -> ()', None),
        ("return", Place("/k.py", 4)),
        ("}", Place("/k.py", 3)),
        ("}", None),
    ]
    assert [line.number for line in found] == list(range(1, len(found) + 1))


def test_lines_of_ptx_and_machine_code():
    found = {line.text.strip(): line.place for line in lines.of_ptx(PTX)}
    assert found["mov.u32     %r1, 1;"] == Place("/k.py", 7)
    assert found["@%p1 bra    $L__BB0_1;"] == found["ret;"] == Place("/lib/helper.py", 8)
    assert found["{"] is found[".reg .b32   %r<2>;"] is found["$L__BB0_1:"] is None
    assert not any(".loc" in text or ".file" in text or "debug" in text for text in found)
    code = [(line.text, line.place) for line in lines.of_machine_code(SASS)]
    assert code == [
        ("k:", None),
        (".text.k:", None),
        ("0000  S2R R1, SR_TID.X", Place("/k.py", 7)),
        ("0010  @P0 EXIT", Place("/lib/helper.py", 8)),
        (".L_x_0:", None),
        ("0020  BRA `(.L_x_0)", None),
    ]


# ---- The page


class Reader(HTMLParser):
    """A page's lines by column with their groups, what it refers to, and its words."""

    def __init__(self, text):
        super().__init__()
        self.columns, self.links, self.words, self._open = {}, [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.links += [given[name] for name in ("src", "href", "action", "data") if name in given]
        if given.get("class") == "code":
            self._column = self.columns.setdefault(given["aria-label"], [])
        elif tag == "div" and "class" not in given and self.columns and "style" not in given:
            self._column.append((given.get("data-p"), []))

    def handle_data(self, data):
        self.words.append(data)
        if self.columns and self._column:
            self._column[-1][1].append(data)

    def groups(self, column):
        return {group for group, _ in self.columns[column] if group is not None}


def page_of(file, capsys, *options):
    out = file.with_suffix(".html")
    assert main(["explain", str(file), "--html", str(out), *options]) == 0
    assert "wrote" in capsys.readouterr().out
    return Reader(out.read_text())


def test_page_of_a_kernel(tmp_path, capsys):
    (tmp_path / "scale.py").write_text(KERNEL.replace("2 * value", "2 * value * (1 < 2)"))
    page = page_of(tmp_path / "scale.py", capsys)
    assert list(page.columns) == ["source", "tile", "warp", "PTX", "SASS"]
    (line,) = (group for group, text in page.columns["source"] if "wl.load" in "".join(text))
    for column, word in (("tile", "tile.load"), ("warp", "tile.load"), ("PTX", "ld.global"), ("SASS", "LDG")):
        if column == "SASS" and not (find_tool("ptxas") and find_tool("nvdisasm")):
            assert "There is no SASS" in " ".join(page.words)
            continue
        assert any(word in "".join(text) for group, text in page.columns[column] if group == line), column
    assert not page.links or set(page.links) == {"data:,"}
    assert "vector-width" in page.words and any("1 < 2" in word for word in page.words), "escaped, and read back"


def test_counters_of_a_kernel(tmp_path, capsys):
    (tmp_path / "scale.py").write_text(KERNEL)
    given = [f"--arg={each}" for each in ("f32[2048]=random", "f32[2048]=nan", "i32=2048")]
    page = page_of(tmp_path / "scale.py", capsys, "--grid", "2", *given)
    said = " ".join(" ".join(page.words).split())
    # 2,048 numbers read and written: 256 sectors of 32 bytes each.
    assert "kernel: scale 2 × 1 × 1" in said and "bound by" in said and "512" in page.words
    shares = [text for _, text in page.columns["source"] if "%" in "".join(text)]
    assert len(shares) >= 3, "shares of the instructions stand beside lines"
    page = page_of(tmp_path / "scale.py", capsys)
    assert "they take the kernel's arguments, --arg, and --grid" in " ".join(page.words)


def test_page_of_a_program(tmp_path, capsys):
    (tmp_path / "strided.py").write_text(PROGRAM)
    page = page_of(tmp_path / "strided.py", capsys, "--sizes", "B=1,H=1,N=128", "--gpu", "A100", "--forward-only")
    assert list(page.columns) == ["source", "attn", "tile", "warp", "PTX", "SASS"]
    (line,) = (group for group, text in page.columns["source"] if "weft.softmax" in "".join(text))
    assert all(line in page.groups(column) <= page.groups("source") for column in ("attn", "tile", "warp", "PTX"))
    said = " ".join(" ".join(page.words).split())
    assert "#attn.strided<4>" in said and "block-formulas" in said and "100.0 %" in said
    assert "modelled, not timed" in said and "bound by" in said and "A100" in said
    assert "query" in page.words and "key" in page.words, "the pattern's picture"
