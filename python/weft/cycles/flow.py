# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Control flow of a kernel: basic blocks, loops, and the path that a steady iteration takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft.compiler import ptxas
from weft.compiler.sass import MATRIX, TENSOR_MATRIX

from .listing import Instruction, Kernel, parse
from .opcodes import pipe_of

_BRANCHES = {"BRA", "BRX", "JMP", "JMX", "EXIT", "RET", "KILL"}
_LEAVES = {"EXIT", "RET", "KILL", "BRX", "JMX"}
#: tries of a wait at an mbarrier: one that fails goes back, or to a copy of it out of line
_TRIES = "PHASECHK"
_WAITS = ("SYNCS", "USETMAXREG", "NANOSLEEP")
_LONGEST_WAIT = 12  # instructions


@dataclass(frozen=True)
class Block:
    """Instructions that run one after another, and the blocks that may follow."""

    number: int
    instructions: tuple[Instruction, ...]
    follows: tuple[int, ...]

    @property
    def tries(self) -> int:
        """Tries of waits at mbarriers."""
        return sum(_TRIES in each.modifiers for each in self.instructions)


@dataclass(frozen=True)
class Loop:
    """A natural loop: its first block, and all that lead back to it. ``path`` is a steady iteration's."""

    head: int
    blocks: frozenset[int]
    inner: bool
    """whether no other loop is inside, tries of waits aside"""
    path: tuple[Instruction, ...]
    whole: tuple[Instruction, ...]
    """all of its instructions, in the order of the code: loops inside included, and what few of its warps run"""

    @property
    def classes(self) -> Counter[str]:
        """Instructions of an iteration by mnemonic, without NOP."""
        return Counter(each.name for each in self.path if each.name != "NOP")

    @property
    def count(self) -> int:
        """Instructions of an iteration, without NOP."""
        return self.classes.total()

    @property
    def matrix(self) -> int:
        """Matrix instructions of an iteration."""
        return sum(each.name in MATRIX for each in self.path)

    @property
    def tensor(self) -> int:
        """Matrix instructions of an iteration whose sums are in tensor memory."""
        return sum(each.name in TENSOR_MATRIX for each in self.path)

    @property
    def first(self) -> int:
        """The address of its first instruction."""
        return self.path[0].address


def loops_of(ptx: str, target: str) -> dict[str, tuple[Loop, ...]]:
    """The loops of each kernel of PTX. There must be a ptxas and an nvdisasm; raises weft.Error as
    ``weft.compiler.ptxas.control_codes`` does."""
    return {name: loops(kernel) for name, kernel in parse(ptxas.control_codes(ptx, target)).items()}


def blocks(kernel: Kernel) -> tuple[Block, ...]:
    """The basic blocks in the order of the code."""
    code = kernel.instructions
    leaders = {0} | {each.target // 16 for each in code if each.target is not None}
    leaders |= {i + 1 for i, each in enumerate(code) if each.name in _BRANCHES and i + 1 < len(code)}
    starts = sorted(leaders)
    number = {start: i for i, start in enumerate(starts)}
    found = []
    for i, start in enumerate(starts):
        end = starts[i + 1] if i + 1 < len(starts) else len(code)
        found.append(Block(i, code[start:end], _follows(code[end - 1], number, i, len(starts))))
    return tuple(found)


def _follows(last: Instruction, number: dict[int, int], at: int, count: int) -> tuple[int, ...]:
    follows = []
    if last.target is not None and last.name in _BRANCHES:
        follows.append(number[last.target // 16])
    leaves = last.name in _LEAVES or last.name in ("BRA", "JMP")
    conditional = bool(last.guard) or (last.name == "BRA" and not last.operands.startswith("`"))
    if (not leaves or conditional) and at + 1 < count:
        follows.append(at + 1)
    return tuple(dict.fromkeys(follows))


def loops(kernel: Kernel) -> tuple[Loop, ...]:
    """The loops by address, without tries of waits."""
    graph = blocks(kernel)
    bodies: dict[int, set[int]] = {}
    dominators = _dominators(graph, _roots(graph))
    before: dict[int, list[int]] = {block.number: [] for block in graph}
    reached = [block for block in graph if block.number in dominators]
    for block in reached:
        for other in block.follows:
            before[other].append(block.number)
    for block in reached:
        for head in block.follows:
            if head in dominators[block.number]:
                bodies.setdefault(head, {head}).update(_leading_to(block.number, head, before))
    real = {head: body for head, body in bodies.items() if not _is_a_wait(body, graph)}
    again = {number for head, body in bodies.items() if head not in real for number in body}
    return tuple(
        Loop(
            head,
            frozenset(body),
            not any(other != head and other in body for other in real),
            _path(graph, head, body, again),
            tuple(each for number in sorted(body) for each in graph[number].instructions),
        )
        for head, body in sorted(real.items())
    )


def _is_a_wait(body: Iterable[int], graph: Sequence[Block]) -> bool:
    """Whether a loop does nothing but try: it computes at most what an address or a number of tries needs."""
    inside = [each for number in body for each in graph[number].instructions]
    if all(each.name in ("BRA", "NOP") for each in inside):
        return True
    if any(each.name in TENSOR_MATRIX for each in inside):  # few instructions, and much work
        return False
    work = {pipe_of(each.name) for each in inside if each.name not in _WAITS}
    waits = any(each.name in _WAITS for each in inside)
    return waits and len(inside) <= _LONGEST_WAIT and work <= {"control", "integer", "multiply", "uniform"}


def _roots(graph: Sequence[Block]) -> tuple[int, ...]:
    """The entry, and the blocks that branches to addresses in registers may lead to: what else is not reached."""
    if not any(each.name == "BRX" for block in graph for each in block.instructions):
        return (0,)
    roots, seen = [], set[int]()
    for block in graph:
        if block.number not in seen:
            roots.append(block.number)
            stack = [block.number]
            while stack:
                node = stack.pop()
                if node not in seen:
                    seen.add(node)
                    stack.extend(graph[node].follows)
    return tuple(roots)


_START = -1  # before the roots


def _dominators(graph: Sequence[Block], roots: tuple[int, ...]) -> dict[int, set[int]]:
    """The blocks that every way from the roots to a block goes through, of those that can be reached."""
    order: list[int] = []
    seen, stack = {_START}, [(_START, iter(roots))]
    while stack:
        node, rest = stack[-1]
        nxt = next((other for other in rest if other not in seen), None)
        if nxt is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(nxt)
            stack.append((nxt, iter(graph[nxt].follows)))
    order.reverse()
    place = {node: i for i, node in enumerate(order)}
    before: dict[int, list[int]] = {node: [] for node in order}
    for node in order:
        for other in roots if node == _START else graph[node].follows:
            before[other].append(node)
    nearest = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            known = [other for other in before[node] if other in nearest]
            best = known[0]
            for other in known[1:]:
                while best != other:
                    while place[best] > place[other]:
                        best = nearest[best]
                    while place[other] > place[best]:
                        other = nearest[other]
            if nearest.get(node) != best:
                nearest[node], changed = best, True
    found: dict[int, set[int]] = {}
    for node in order:
        found[node] = {node} | (found[nearest[node]] if node != order[0] else set())
    return found


def _leading_to(tail: int, head: int, before: dict[int, list[int]]) -> set[int]:
    found, waiting = {head}, [tail]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(before[node])
    return found


#: what a way through a body has, negative where less is better, and its blocks
_Way = tuple[tuple[int, int, int, int], tuple[int, ...]]


def _worth(block: Block, again: set[int], tensor: bool) -> tuple[int, int, int, int]:
    """What a block adds to a way. Tries are for copies, which are taken to be there; of loops whose products are in
    tensor memory they are for those too, and only tries once more, in the blocks ``again``, are passed by."""
    matrix = sum(each.name in (*MATRIX, *TENSOR_MATRIX) for each in block.instructions)
    more = block.tries if block.number in again or not tensor else 0
    return matrix, -more, block.tries if tensor else 0, -len(block.instructions)


def _path(graph: Sequence[Block], head: int, body: set[int], again: set[int]) -> tuple[Instruction, ...]:
    """The instructions from a loop's head back to it: of all ways that take each block once the one with the most
    matrix instructions, then the fewest tries of waits, then the fewest instructions."""
    tensor = any(each.name in TENSOR_MATRIX for number in body for each in graph[number].instructions)
    best: dict[int, _Way | None] = {}
    for node in _after_order(graph, head, body):
        block = graph[node]
        own = _worth(block, again, tensor)
        choices: list[_Way] = [((0, 0, 0, 0), ())] if head in block.follows else []
        choices += [known for other in block.follows if other != head and (known := best.get(other)) is not None]
        most = max(choices, key=lambda choice: choice[0], default=None)
        best[node] = most and (_sum(own, most[0]), (node, *most[1]))
    chosen = best.get(head)
    numbers = chosen[1] if chosen else tuple(sorted(body))
    return tuple(each for number in numbers for each in graph[number].instructions)


def _sum(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3]


def _after_order(graph: Sequence[Block], head: int, body: set[int]) -> list[int]:
    """The body's blocks, each after those that follow it; edges that close an inner loop aside."""
    order: list[int] = []
    seen = {head}
    stack = [(head, iter(graph[head].follows))]
    while stack:
        node, rest = stack[-1]
        nxt = next((other for other in rest if other in body and other not in seen), None)
        if nxt is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(nxt)
            stack.append((nxt, iter(graph[nxt].follows)))
    return order
