# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Every op has an example in its description, and weft-opt takes it: it parses, verifies, and prints what parses alike.

An example that has a function is a module. Any other is put into a function whose arguments are the values that it uses
and does not define. Their types are asked of the parser: it says what type a value was used with where its definition,
further down, has another.
"""

import re
import sys

from pages import ops, weft_opt

VALUE = re.compile(r"%([A-Za-z_]\w*)")
DEFINED = re.compile(r"^\s*((?:%\w+(?::\d+)?(?:, )?)+) = |[(,] ?%(\w+): (?=[!\w])", re.MULTILINE)


class Example:
    """An op's example, and what is known of the values that it takes."""

    def __init__(self, op, text):
        self.op, self.text = op, text
        self.types = {}
        self.unknown = []
        if "func.func" not in text:
            defined = {name for match in DEFINED.finditer(text) for name in VALUE.findall(match[0])}
            self.unknown = [name for name in dict.fromkeys(VALUE.findall(text)) if name not in defined]

    def module(self):
        if "func.func" in self.text:
            return self.text
        # Aliases of attributes and types stand outside of functions.
        aliases = "".join(re.findall(r"^[#!]\w+ = .*\n", self.text, re.MULTILINE))
        body = re.sub(r"^[#!]\w+ = .*\n", "", self.text, flags=re.MULTILINE)
        arguments = ", ".join(f"%{name}: {type}" for name, type in self.types.items())
        asked = "".join(f"%{name} = builtin.unrealized_conversion_cast to none\n" for name in self.unknown)
        return f"{aliases}func.func @example({arguments}) {{\n{body}{asked}return\n}}\n"

    def learn(self, messages):
        """Take a value's type from the parser's messages; whether there was one."""
        name = re.search(r"definition of SSA value '%(\w+)#0' has type 'none'", messages)
        used = re.search(r"previously used here with type '(.*)'\n", messages)
        if not name or not used:
            return False
        self.unknown.remove(name[1])
        self.types[name[1]] = used[1]
        return True


def main():
    wrong = []
    left, done = [Example(op.name, text) for op in ops() for text in op.examples], []
    while left:
        learned = []
        for example, (printed, said) in zip(left, weft_opt([example.module() for example in left]), strict=True):
            if not said:
                done.append((example, printed))
            elif example.learn(said):
                learned.append(example)
            else:
                wrong.append(f"{example.op}: in its example\n{example.text}{said}")
        left = learned
    for (example, printed), (again, said) in zip(done, weft_opt([printed for _, printed in done]), strict=True):
        if example.op not in printed:
            wrong.append(f"{example.op}: the example has no such op\n{printed}")
        if said or again.strip() != printed.strip():
            wrong.append(f"{example.op}: prints as\n{printed}and then as\n{again}{said}")
    wrong += [
        f"{op.name}: expected an example, a block of 'mlir', in its description" for op in ops() if not op.examples
    ]
    print(*wrong, f"{len(wrong)} faults, {len(ops())} ops", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
