# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Every message of the verifiers in dialects/ and of the passes in compiler/ is one that a test gets to see.

The literals of a message in the C++ are a pattern; what is streamed between them is anything. A constraint on types or
attributes in a .td file has its summary as message. The tests that expect messages are run again without
`--verify-diagnostics`, which gives the messages as they are. Of what no text of IR leads to, a list says why, and
which test in another language names it.
"""

import re
import shlex
import subprocess
import sys

from pages import ROOT

# What no text leads to, and why.
UNREACHABLE = {
    "expected at least one pattern": "an empty list, such as #attn.and<>, does not parse; C++ can make one",
    "LLVM cannot compile the module: ": "an error of LLVM's own",
    "LLVM has no back end for 'sm_80': ": "LLVM is built without NVPTX",
    "LLVM's back end for '": "an error of LLVM's own",
    "the translated LLVM IR is not valid: ": "a fault of MLIR's translation",
    "cannot be translated to LLVM IR": "a fault of MLIR's translation",
    "the IR after the stage '' cannot be parsed again": "a fault of an op's printer or parser",
    "the stage '' fails on a copy of the module": "a fault of a pass: it must not depend on addresses",
    "the IR after the stage '' prints otherwise": "a fault of an op's printer or parser",
    "expected a lowered program of 'attn.launch' ops, but got ''": "programs that are not lowered are lowered first",
    "expected signals of an expansion, but its source comes as rows": "expansions end where rows would become signals",
    "expected a value that is stored, or computed row by row or element by element, but got ": (
        "a fault of attn-to-tile: it stores what no kernel computes"
    ),
}

# What a test in another language leads to: a part of the message, and the file that names it.
ELSEWHERE = {
    "expected 'x' to be a tile kernel of the module": ("to be a tile kernel", "test/Python/test_program_plans.py"),
    "expected 'x' to take (i32), but it takes (i64)": ("to take", "test/Python/test_program_plans.py"),
    "expected result 0 to be a launch's own, but it is an argument": (
        "to be a launch's own",
        "test/Python/test_program_plans.py",
    ),
    "the pattern 'x' failed": ("failed, but changed the IR", "test/Unit/Compiler/PipelineChecksTest.cpp"),
    "expected the name of an operation, but got 'x'": (
        "expected the name of an operation",
        "test/Python/test_language_ir.py",
    ),
}

LITERALS = re.compile(r'\s*(?:"(?:[^"\\]|\\.)*"\s*)+')
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
CONSTRAINT = re.compile(r"\bdef \w+ : (?:AnyTypeOf|ArrayAttrBase|DialectType|RankedTensorOf|TypeConstraint)(?=<)")


def arguments(text, start, separator):
    """What stands between separators from `start` to the end of the brackets or of the statement, and where that is."""
    parts, depth, at, begin = [], 0, start, start
    while depth or text[at] not in ");":
        if literal := LITERAL.match(text, at):
            at = literal.end()
            continue
        if not depth and text.startswith(separator, at):
            parts.append(text[begin:at])
            begin = at + len(separator)
        depth += (text[at] in "([{") - (text[at] in ")]}")
        at += 1
    return [*parts, text[begin:at]], at


def pattern(part):
    """The regular expression that matches what streaming an expression gives."""
    if not part.strip():
        return ""
    if not LITERALS.fullmatch(part):
        return ".*"
    return "".join(re.escape(literal.replace('\\"', '"').replace("\\\\", "\\")) for literal in LITERAL.findall(part))


def streamed_messages(text):
    """The patterns of the messages in a C++ file, each with where it stands."""
    for match in re.finditer(r"\bemit(?:Op)?Error\(", text):
        given, end = arguments(text, match.end(), ",")
        streamed, _ = arguments(text, end + 1, "<<")
        parts = [part for part in given if LITERALS.fullmatch(part)] + streamed[1:]
        message = "".join(pattern(part) for part in parts).removeprefix(r"'.*'\ op\ ")
        if message.replace(".*", ""):
            yield match.start(), message


def constraint_messages(text):
    """The patterns of the messages of constraints in a .td file, each with where it stands."""
    for match in CONSTRAINT.finditer(text):
        summary = LITERAL.findall(text[match.end() : re.compile(r"> \{|>;").search(text, match.end()).start()])[-1]
        yield match.start(), rf".*(?:must be|constraint:) (?:variadic of )?{re.escape(summary)}"
    for match in re.finditer(r'TypedArrayAttrBase<\w+, "([^"]*)">', text):
        yield match.start(), f".*constraint: {re.escape(match[1])}"


def seen():
    """The messages that the cases of all tests lead to."""
    for path in (ROOT / "test").rglob("*.mlir"):
        for command in re.findall(r"^// RUN: (?:not )?(weft-(?:opt|translate) .*)", path.read_text(), re.MULTILINE):
            words = shlex.split(command.split("|")[0].replace("2>&1", ""))
            if "--verify-diagnostics" not in words and "RUN: not" not in path.read_text():
                continue
            words = [str(path) if word == "%s" else word for word in words if word != "--verify-diagnostics"]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            yield from re.findall(r"error: (?:custom op '[\w.]+' )?(?:'[\w.]+' op )?(.*)", done.stderr)


def main():
    said = [*set(seen()), *UNREACHABLE, *ELSEWHERE]
    count, without = 0, []
    for part, file in ELSEWHERE.values():
        if part not in (ROOT / file).read_text():
            without.append(f"{file}: expected a test of the message '{part}'")
    folders = [ROOT / "dialects", ROOT / "compiler"]
    for path in sorted(path for folder in folders for kind in ("*.cpp", "*.td") for path in folder.rglob(kind)):
        text = path.read_text()
        for start, message in constraint_messages(text) if path.suffix == ".td" else streamed_messages(text):
            count += 1
            if not any(re.match(message, each) for each in said):
                line = text.count("\n", 0, start) + 1
                without.append(f"{path.relative_to(ROOT)}:{line}: expected a test of the message '{message}'")
    print(*without, f"{len(without)} of {count} messages have no test", sep="\n")
    return bool(without)


if __name__ == "__main__":
    sys.exit(main())
