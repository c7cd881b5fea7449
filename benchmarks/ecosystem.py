# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How many of an installed package's Triton kernels compile through ``weft.triton``, as they are.

    pip install flash-linear-attention
    .venv/bin/python benchmarks/ecosystem.py fla --trace

    .venv/bin/python benchmarks/ecosystem.py --sources FOLDER/vllm --trace     # an unpacked wheel

Every module of the package is imported with ``triton`` replaced; with --sources what a tree's imports lack is left out
(kernel_sources.py), and other arguments are tried where the first do not fit. A kernel is a @triton.jit function that
some module launches. Its arguments are made up from its source: a parameter that is loaded from, stored to or added to
is a pointer, constants have sizes by their names, flags are tried both ways. What is counted is that the front end
(--trace) or the whole compiler takes it, not that its results are right.
"""

from __future__ import annotations

import argparse
import ast
import collections
import importlib
import pathlib
import pkgutil
import re
import sys
import time
import warnings
from typing import Any

import kernel_sources

OTHERS_MACHINES = (
    *("ascend", "npu", "/amd", "rocm", "hip", "xpu", "gluon", "cambricon", "kunlun", "mthreads", "iluvatar"),
    *("metax", "tsingmicro", "aipu", "hygon", "sunrise", "enflame", "_arm", "aiter"),
)
SKIPPED = ("ascend", "gluon", "tilelang", "flashkda", "npu")
FLAGS = re.compile(
    r"^(USE|IS|STORE|HAS|OUTPUT|SAVE|REVERSE|INIT|DO|APPLY|COMPUTE|RECOMPUTE|LOAD|ADD|NORM|CAUSAL|FUSE|WITH|STATE|"
    r"TRANSPOSE|ACCUMULATE|RETURN|FINAL|HEAD_FIRST|STATIC|ALLOW|SAFE|ENABLE|EXP|BETA|IN_?PLACE|FORWARD|BACKWARD|"
    r"ONLY|NEED|SINGLE|SPLIT_|GATE_|KV_)"
)
ACCESSES = ("load", "store", "make_block_ptr", "atomic_add", "atomic_max", "atomic_cas", "make_tensor_descriptor")
SIZES: dict[str, int] = dict(
    **dict.fromkeys(("BT", "BS", "K", "V", "D", "BD", "M", "N", "C", "L"), 64),
    **dict.fromkeys(("BK", "BV", "BM", "BN"), 32),
    **dict.fromkeys(("BC", "S"), 16),
    **dict.fromkeys(("HQ", "NC", "W", "BW", "NB", "NUM_WARPS", "L2"), 4),
    **dict.fromkeys(("H", "HV", "NT", "NK", "NV", "B", "R", "G"), 2),
    T=128,
)
OTHERS = {
    "ACTIVATION": "silu",
    "REDUCTION": "mean",
    "GATE_TYPE": "sigmoid",
    "MODE": 0,
    "PRECISION": "tf32",
    "DOT_PRECISION": "ieee",
    "SOLVE_TRIL_DOT_PRECISION": "ieee",
    "SAFE_GATE_DOT_PRECISION": "ieee",
    "output_dtype": None,
    "lower_bound": None,
}


def modules(package: str) -> tuple[list[Any], dict[str, str]]:
    """The package's modules, and why others cannot be imported."""
    root = importlib.import_module(package)
    found, failed = [root], {}
    for each in pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda name: None):
        if any(word in each.name for word in SKIPPED):
            continue
        try:
            found.append(importlib.import_module(each.name))
        except Exception as error:
            failed[each.name] = f"{type(error).__name__}: {error}"
    return found, failed


def kernels(found: list[Any]) -> dict[str, Any]:
    """The kernels and wrappers by name that some module launches."""
    from weft.compiler.launchable import Launchable

    sources = [pathlib.Path(m.__file__).read_text() for m in found if getattr(m, "__file__", None)]
    launched = set(re.findall(r"\b(\w+)\[", "\n".join(sources)))
    kernels = {}
    for module in found:
        for name, value in vars(module).items():
            if isinstance(value, Launchable) and name in launched:
                base = value
                while isinstance(base.fn, Launchable):
                    base = base.fn
                kernels[f"{base.fn.__module__}.{name}"] = value
    return kernels


def pointers(tree: ast.AST, reach: Any = None, depth: int = 4) -> set[str]:
    """The names that a kernel's source uses as pointers: those that it, or a helper that it hands them to, loads from
    or stores to, or makes others of. ``reach`` gives the helper of a name."""
    found: set[str] = set()
    made: list[tuple[str, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr in ACCESSES:
                found.add(_root(node.args[0]))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and reach and depth:
            helper = reach(node.func.id)
            if getattr(helper, "__weft_jit__", False) is True:
                used = pointers(helper.source.tree, helper.fn.__globals__.get, depth - 1)
                given = [*zip((p.name for p in helper.params), node.args, strict=False)]
                given += [(each.arg, each.value) for each in node.keywords]
                found |= {_root(value) for name, value in given if name in used}
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs = zip(target.elts, node.value.elts, strict=False) if both else [(target, node.value)]
                made += [(_root(a), _root(b)) for a, b in pairs]
        elif isinstance(node, ast.AugAssign):
            made.append((_root(node.target), _root(node.target)))
    for _ in range(4):
        found |= {value for target, value in made if target in found}
    return found - {""}


def _root(node: ast.AST) -> str:
    """The name that an address begins with."""
    while True:
        if isinstance(node, ast.BinOp):
            node = node.left
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.IfExp):
            node = node.body
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value if node.func.attr == "to" or not node.args else node.args[0]
        else:
            return node.id if isinstance(node, ast.Name) else ""


INDICES = re.compile(
    r"^(?!.*logits).*(seqlens|indices|offsets|index|idx|split|token|label|target|counts|lens|page|chunk_|ids|lut)"
)
SCALARS = re.compile(
    r"^(?!.*stride|s_).*(scale|eps|lower|alpha|limit|temp|softcap|theta|beta|ratio|smoothing|logit|lse_square)"
)
WIDE = re.compile(r"^(g|A|beta|lse|delta|h0|ht|s$|z|m$|rstd|mean|weight|bias|w$|b$|dw|db|dg|dt_bias|o_)")


def attempts(kernel: Any) -> list[tuple[Any, dict[str, str], dict[str, Any], dict[str, Any]]]:
    """What to try: the kernel itself, the types of its arguments, its constants, its options; flags both ways, floats
    all of one type and of several."""
    from weft.compiler.signature import short_name

    computed: set[str] = set()
    tuned: dict[str, Any] = {}
    inner = kernel
    while not hasattr(inner, "params"):
        computed |= set(getattr(inner, "values", ()))
        if hasattr(inner, "configs"):
            tuned.update(inner.configs[len(inner.configs) // 2].all_kwargs())
        inner = inner.fn
    used = pointers(inner.source.tree, inner.fn.__globals__.get)
    tuples = {_root(n) for n in ast.walk(inner.source.tree) if isinstance(n, ast.Subscript)} & used
    tries = []
    for kind in ("fp32", "bf16", "mixed"):
        for flag in (False, True):
            arguments: dict[str, str] = {}
            constants: dict[str, Any] = {}
            for parameter in inner.params:
                name = parameter.name
                optional = parameter.has_default and parameter.default is None
                if name in tuned:
                    constants[name] = tuned[name]
                elif parameter.is_constexpr:
                    constants[name] = constant(name, flag, name in computed, parameter)
                elif name in used and not flag and (optional or "seqlens" in name):
                    constants[name] = None
                elif name in used:
                    narrow = "fp32" if kind == "mixed" and WIDE.match(name) else "bf16" if kind == "mixed" else kind
                    spelled = "*i64" if INDICES.search(name) else f"*{narrow}"
                    whole = any(parts_of(n, name) for n in ast.walk(inner.source.tree))
                    names = [f"{name}[{i}]" for i in range(SIZES["L2"])] if name in tuples and whole else [name]
                    arguments.update(dict.fromkeys(names, spelled))
                else:
                    guessed = "fp32" if SCALARS.search(name) else "i32"
                    arguments[name] = guessed if parameter.type is None else short_name(parameter.type)
            options = {k: v for k, v in tuned.items() if k in ("num_warps", "num_stages") and k not in constants}
            tries.append((inner, arguments, constants, options))
    return tries


def parts_of(node: ast.AST, name: str) -> bool:
    """Whether a node takes a part of a parameter by its number."""
    part = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name
    return part and isinstance(node.slice, (ast.Constant, ast.Name))


def constant(name: str, flag: bool, computed: bool, parameter: Any) -> Any:
    """A constant's value, by its name."""
    from weft.language import float32

    if name in OTHERS:
        return OTHERS[name]
    if name == "DTYPE":
        return float32
    if name in SIZES:
        return SIZES[name]
    if computed or FLAGS.match(name):
        return flag
    if parameter.has_default:
        return parameter.default
    if name.startswith("B") or "BLOCK" in name.upper():
        return 32
    return 64 if name.isupper() else 16


def compile_all(kernel: Any, trace: bool) -> str:
    """ "" where some attempt compiles, else why the last does not."""
    from weft.compiler.kernel import build
    from weft.compiler.lower import Options, lower
    from weft.compiler.signature import Argument, Signature, type_named

    reason = ""
    for function, arguments, constants, options in attempts(kernel):
        types = {name: Argument(type_named(kind), 16 if kind[0] == "*" else 1) for name, kind in arguments.items()}
        spread = Options(options.get("num_warps", 4), options.get("num_stages", 3))
        try:
            (lower if trace else build)(function, Signature(types, constants), spread, "sm_80")
            return ""
        except Exception as error:
            reason = str(error).strip() or repr(error)
    return reason


def compile_from_sources(kernel: Any, trace: bool, tries: int = 120) -> str:
    """ "" where arguments are found with which a kernel compiles, else why the last are not."""
    from weft.compiler.kernel import build
    from weft.compiler.lower import Options, lower
    from weft.compiler.signature import Argument, Signature, type_named

    inner, _, constants, options = attempts(kernel)[0]
    used = pointers(inner.source.tree, inner.fn.__globals__.get)
    spread = Options(options.get("num_warps", 4), options.get("num_stages", 3))

    def attempt(kernel: Any, arguments: dict[str, str], fixed: dict[str, Any]) -> None:
        typed = {name: Argument(type_named(kind), 16 if kind[0] == "*" else 1) for name, kind in arguments.items()}
        (lower if trace else build)(kernel, Signature(typed, fixed), spread, "sm_80")

    return kernel_sources.found_by_trying(inner, used, constants, attempt, tries)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", help="an installed package, or the folder of its sources")
    parser.add_argument("--sources", action="store_true", help="read a folder's kernels without its imports")
    parser.add_argument("--trace", action="store_true", help="the front end alone")
    parser.add_argument("--only", default="", help="part of a kernel's name")
    parser.add_argument("--verbose", action="store_true", help="whole messages")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    from weft.triton.replace import replace

    replace()
    started = time.time()
    failed: dict[str, str] = {}
    if given.sources:
        found = [*kernel_sources.Tree(pathlib.Path(given.package), OTHERS_MACHINES).modules.values()]
    else:
        found, failed = modules(given.package)
    names = {name: kernel for name, kernel in kernels(found).items() if given.only in name}
    reasons: dict[str, list[str]] = collections.defaultdict(list)
    for name, kernel in sorted(names.items()):
        reason = (compile_from_sources if given.sources else compile_all)(kernel, given.trace)
        if reason:
            lines = reason.splitlines()
            first = re.sub(r"^\S+:\d+:\d+: ", "", lines[0])
            reasons[reason if given.verbose else first].append(name)
    bad = sum(map(len, reasons.values()))
    right = len(names) - bad
    part = 100 * right / max(1, len(names))
    print(
        f"{len(names)} kernels of {len(found)} modules, {right} compile ({part:.1f} %), {time.time() - started:.0f} s"
    )
    for reason, which in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(which):4}  {reason}\n        {', '.join(each.rpartition('.')[2] for each in which[:6])}")
    for name, reason in failed.items():
        print(f"not imported: {name}: {reason[:200]}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
