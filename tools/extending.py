# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Which files of the product one touches to add an op, a pattern, a target or an instruction: the table of
docs/Extending.md, printed. `--check` compares it with the tree, and with the page."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("targets", "dialects", "compiler", "runtime", "python/weft")
BEGIN, END = "<!-- files: printed by tools/extending.py -->", "<!-- /files -->"

#: what is added; an example of it that is in the tree; what names that in code; the files that do
EXAMPLES = [
    (
        "a row-local op",
        "`attn.rope`",
        r"\bRopeOp\b|\battn\.rope\b|\bAttn_RopeOp\b",
        [
            "compiler/Conversion/AttnToTile/Rows/Ops/Rope.cpp",
            "dialects/Attn/IR/Ops/AttnTensorOps.cpp",
            "dialects/Attn/IR/Ops/AttnTensorOps.td",
            "python/weft/programs/functions.py",
        ],
    ),
    (
        "a product with a weight",
        "`attn.head_conv` and its weight's gradient",
        r"\bHeadConv(WeightGrad)?Op\b|\battn\.head_conv\b|\bAttn_HeadConv",
        [
            "compiler/Conversion/AttnToTile/Elements/Products/HeadConv.cpp",
            "compiler/Conversion/AttnToTile/Expansions/Products/HeadConv.cpp",
            "compiler/Differentiate/HeadAdjoints.cpp",
            "dialects/Attn/IR/Ops/AttnHeadOps.cpp",
            "dialects/Attn/IR/Ops/AttnHeadOps.td",
            "python/weft/programs/heads.py",
        ],
    ),
    (
        "a pattern",
        "`#attn.prefix`",
        r"\bPrefixAttr\b|\bAttn_PrefixAttr\b|\"prefix\"",
        [
            "dialects/Attn/IR/AttnPatterns.cpp",
            "dialects/Attn/IR/AttnPatterns.td",
            "dialects/Attn/Pattern/BandsOf.cpp",
            "dialects/Attn/Pattern/Membership.h",
            "dialects/Attn/Pattern/Simplify.cpp",
            "python/weft/patterns/families.py",
        ],
    ),
    ("a target that differs in numbers", "any", r"\"sm_\d+a?\"", ["targets/Targets.cpp"]),
    (
        "an instruction of the simulator",
        "`mad24`",
        r"\bmad24",
        ["runtime/Simulator/Machine/Forms/IntegerForms.cpp", "runtime/Simulator/Semantics/Integer.h"],
    ),
]


def code(path: Path) -> str:
    """A file's text without comments, docstrings and descriptions."""
    text = path.read_text()
    if path.suffix == ".py":
        return re.sub(r"(?m)(^|\s)#.*$", "", re.sub(r'"""(?:.|\n)*?"""', "", text))
    if path.suffix == ".td":
        text = re.sub(r"let description = \[\{.*?\}\];", "", text, flags=re.DOTALL)
    return re.sub(r"//.*|/\*(?:.|\n)*?\*/", "", text)


def naming(pattern: str) -> list[str]:
    """The product's files whose code has `pattern`."""
    listed = subprocess.check_output(["git", "ls-files", *PRODUCT], cwd=ROOT, text=True).split()
    kinds = (".cpp", ".h", ".td", ".py")
    lists = ("python/weft/__init__.py", "python/weft/patterns/__init__.py")  # a line for each public name
    return [
        name for name in listed if name.endswith(kinds) and name not in lists and re.search(pattern, code(ROOT / name))
    ]


def table() -> str:
    rows = ["| to add | as | files of the product |", "|---|---|---|"]
    for what, example, _, files in EXAMPLES:
        rows.append(f"| {what} | {example} | {len(files)}: {', '.join(f'`{file}`' for file in files)} |")
    return "\n".join(rows)


def main() -> None:
    print(table())
    if "--check" not in sys.argv[1:]:
        return
    wrong = [(example, naming(pattern), files) for _, example, pattern, files in EXAMPLES if naming(pattern) != files]
    for example, found, files in wrong:
        print(f"expected {example} in {', '.join(files)}, but it is in {', '.join(found)}", file=sys.stderr)
    page = (ROOT / "docs" / "Extending.md").read_text()
    if f"{BEGIN}\n{table()}\n{END}" not in page:
        sys.exit("expected docs/Extending.md to have this table: put it there")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
