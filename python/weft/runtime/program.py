# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs from Python: launches that make outputs from inputs, from a library or straight from the compiler."""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from weft import native
from weft.runtime import exchange
from weft.runtime.compiling import compiling
from weft.runtime.devices import device_for, open_device
from weft.runtime.elements import OF_IR, TORCH
from weft.runtime.plain import changed, refuse, refused, seen_by_torch

Found = TypeVar("Found")
_OPTIONS = ("outputs", "stream", "device", "poison")
_NUMPY = {**TORCH, "bf16": "uint16"}  # NumPy itself has no bfloat16: its bits


class Program:
    """A program of a library. ``program(*inputs)`` runs it and gives its output, or a tuple of them.

    Inputs are torch tensors or NumPy arrays of any strides whose last axis is contiguous. In NumPy bf16 and 8-bit
    floats are those of ml_dtypes, or their bits: uint16 and uint8. Results of bf16 are of ml_dtypes if an input is.
    Outputs are torch tensors on the inputs' device where one of the inputs is torch's, else NumPy arrays. On CUDA a run
    is queued on torch's current stream and returns at once.
    """

    def __init__(self, library: Any, facts: dict[str, Any]) -> None:
        """``library`` is the native handle of the library that holds the program, ``facts`` what its manifest says."""
        self._library = library
        self._native: dict[int, Any] = {}
        self.name: str = facts["name"]
        #: what it takes and what it gives, in order: {"name": "q", "type": "fp16", "dims": ["B", "H", "N", "64"]}
        self.inputs: list[dict[str, Any]] = facts["inputs"]
        self.outputs: list[dict[str, Any]] = facts["outputs"]
        #: of a backward: the numbers of the forward program's inputs that the outputs are the gradients of
        self.gradients_of: list[int] = facts.get("gradients_of", [])
        #: all that the manifest says of it
        self.plan: dict[str, Any] = facts
        #: the plans as the manifest has them, in order of preference
        self.variants: list[dict[str, Any]] = facts["variants"]

    @classmethod
    def from_compiled(
        cls, info: Mapping[str, Any], ptx: str, target: str | None = None, name: str | None = None
    ) -> Program:
        """The program ``name``, or the only one, of what the compiler gave: nothing is written to disk.

        To have several of one compilation, take ``Library.from_compiled(info, ptx).programs``.
        """
        library = open_compiled(info, ptx, target)
        programs = {facts["name"]: facts for facts in json.loads(library.manifest).get("programs", [])}
        if name is None and len(programs) != 1:
            raise ValueError(f"expected the name of a program, one of {', '.join(programs) or 'none'}")
        found = found_in(programs, name, "<memory>") if name is not None else next(iter(programs.values()))
        return cls(library, found)

    def run(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any] | None = None,
        *,
        stream: int | None = None,
        device: str | None = None,
        poison: bool = False,
    ) -> tuple[Any, ...]:
        """Run on ``inputs``; gives the outputs, fresh ones or those of the caller.

        ``stream`` is a CUstream as an int; None is torch's current stream where CUDA tensors are passed, else the
        device's default. ``device`` is by default that of the first CUDA tensor, else weft.device(). With ``poison``
        fresh outputs and all memory in between hold NaN before. Raises ``weft.runtime.Error``, naming the argument,
        what was expected and what came.
        """
        if any(map(exchange.is_foreign, inputs)) or any(map(exchange.is_foreign, outputs or ())):
            return self._exchanged(inputs, outputs, stream=stream, device=device, poison=poison)
        refuse(zip((each["name"] for each in self.inputs), inputs, strict=False))
        if any(getattr(each, "requires_grad", False) for each in inputs) and _torch_types()[0].is_grad_enabled():
            raise refused(
                f"'{self.name}': expected inputs without gradients, but got some that require them, which the results "
                "would not pass on: call library.differentiable(NAME), or run under torch.no_grad()"
            )
        if outputs is not None:
            refuse(zip((each["name"] for each in self.outputs), outputs, strict=False))
            exchange.must_be_writable(zip((each["name"] for each in self.outputs), outputs, strict=False))
        made = self.queue(inputs, outputs, stream=stream, device=device, poison=poison)
        changed(outputs or ())
        return made

    def _exchanged(self, inputs: Sequence[Any], outputs: Sequence[Any] | None, **options: Any) -> tuple[Any, ...]:
        """``run`` on arrays some of which are of other libraries: results are of the first of these."""
        named = zip((each["name"] for each in self.inputs), inputs, strict=False)
        found, home = exchange.adopted(named)
        taken = [array for _, array in found]
        if len(taken) < len(inputs):
            raise TypeError(f"'{self.name}': expected {len(self.inputs)} inputs, but got {len(inputs)}")
        if outputs is None:
            return tuple(exchange.given_back(self.run(taken, None, **options), home))
        places, _ = exchange.adopted(zip((each["name"] for each in self.outputs), outputs, strict=False))
        self.run(taken, [array for _, array in places], **options)
        return tuple(outputs)

    def queue(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any] | None = None,
        *,
        stream: int | None = None,
        device: str | None = None,
        poison: bool = False,
    ) -> tuple[Any, ...]:
        """``run`` on arrays that are known to be plain, by one who answers for their gradients."""
        torch = sys.modules.get("torch")
        if torch is None or not torch.autograd._profiler_enabled():
            return self._queue(tuple(inputs), outputs, stream, device, poison)
        with torch.profiler.record_function(f"weft::{self.name.removesuffix('.forward')}"):  # in NVTX too, where asked
            return self._queue(tuple(inputs), outputs, stream, device, poison)

    def _queue(
        self,
        inputs: tuple[Any, ...],
        outputs: Sequence[Any] | None,
        stream: int | None,
        device: str | None,
        poison: bool,
    ) -> tuple[Any, ...]:
        if outputs is None and stream is None and device is None and not poison:
            direct: tuple[Any, ...] | None = self._on(device_for(inputs)).run(inputs)
            if direct is not None:
                return direct
        on = open_device(device) if device else device_for(inputs)
        call = self._on(on).prepare(inputs)
        tensor, owner = None, None
        for each in inputs:
            if isinstance(each, exchange.DeviceArray):
                owner = owner or each
            elif hasattr(each, "data_ptr"):
                tensor = each
                break
        if outputs is None and tensor is None and owner is not None:
            made = tuple([owner.empty(kind, shape) for kind, shape in call.outputs])
        elif outputs is None:
            where = None if tensor is None else tensor.device
            made = tuple([empty(where, kind, shape, poison, inputs) for kind, shape in call.outputs])
        else:
            made = tuple(outputs)
        address = None
        if tensor is not None and tensor.is_cuda and call.workspace_bytes:  # from torch's memory, in the stream's order
            workspace = empty(tensor.device, "i8", (call.workspace_bytes + 256,), poison)
            address = (workspace.data_ptr() + 255) // 256 * 256
        call.run(made, address, stream, poison)
        if stream is not None and tensor is not None and tensor.is_cuda:  # their memory is in use on that stream too
            _keep_for(stream, [*made, *inputs] if address is None else [*made, *inputs, workspace])
        return made

    def native_for(self, inputs: tuple[Any, ...]) -> Any:
        """The native program that runs these."""
        return self._on(device_for(inputs))

    def direct(self, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """``queue`` in one step, on torch's tensors that kernels take as they are; None for others, and where torch's
        profiler follows the call."""
        torch = sys.modules.get("torch")
        if torch is None or torch.autograd._profiler_enabled():
            return None
        made: tuple[Any, ...] | None = self._on(device_for(inputs)).run(inputs)
        return made

    def prepare(self, device: str | None = None) -> Program:
        """Load the kernels on a device, the default one if None: runs that follow load nothing, wait for nothing, and
        allocate nothing but outputs and workspace, from torch's memory. Gives the program itself."""
        self._on(open_device(device)).load()
        return self

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Run on inputs by position or by name; gives the one output, or a tuple of several. Options as ``run``'s."""
        if compiling():
            from weft.runtime import dynamo  # PyTorch is loaded: it reads this

            return dynamo.call(Program.operate, (self, *inputs), named)
        if seen_by_torch(inputs):
            return self.operate(*inputs, **named)
        options = {key: named.pop(key) for key in _OPTIONS if key in named} if named else {}
        results = self.run(self.positional(inputs, named), **options)
        return results[0] if len(results) == 1 else results

    @functools.cached_property
    def identity(self) -> str:
        """What tells the programs of this library from those of others, the same in every process: twelve digits of
        the library's digest, or of one of all that is in a library in memory."""
        manifest = json.loads(self._library.manifest)
        if "digest" in manifest:
            return str(manifest["digest"]).removeprefix("sha256:")[:12]
        kernels = ((each["name"], range(len(each["variants"]))) for each in manifest["kernels"])
        texts = [self._library.ptx(name, variant) for name, variants in kernels for variant in variants]
        return hashlib.sha256(json.dumps([manifest, texts], sort_keys=True).encode()).hexdigest()[:12]

    def positional(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The inputs in order, given some by position and the rest by name. TypeError names those that are missing or
        too many."""
        if not named and len(inputs) == len(self.inputs):
            return inputs
        missing = [each["name"] for each in self.inputs[len(inputs) :]]
        if sorted(missing) != sorted(named) and (named or missing):
            expected = ", ".join(f"'{each}'" for each in missing) or "none"
            raise TypeError(
                f"'{self.name}': expected {expected} by name after {len(inputs)} arguments by position, but got "
                + (", ".join(f"'{each}'" for each in named) or "none")
            )
        return inputs + tuple(named[each] for each in missing)

    def operate(self, *inputs: Any, **named: Any) -> Any:
        """A call, without gradients, that torch sees as an operator of its own."""
        from weft.runtime.autograd import operators_of  # PyTorch is loaded already: its tensors are the arguments
        from weft.runtime.tangents import FromLibrary

        linearise = FromLibrary({"": self}, self._sibling)
        results = operators_of({"": self}, linearise)(self.positional(inputs, named))
        return results[0] if len(results) == 1 else results

    def _sibling(self, name: str) -> Program | None:
        """Another program of the library."""
        found = [each for each in json.loads(self._library.manifest).get("programs", []) if each["name"] == name]
        return Program(self._library, found[0]) if found else None

    def _on(self, device: Any) -> Any:
        """The native program on a device, made on first use."""
        found = self._native.get(id(device))
        if found is None:
            native_program = native.load("_runtime").Program
            found = self._native[id(device)] = native_program(self._library, device, self.name)
        return found

    def __copy__(self) -> Program:
        return self  # nothing in it changes

    def __deepcopy__(self, memo: Any) -> Program:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            f"expected a library to pickle, but got its program '{self.name}': pickle the library, or its path"
        )

    def __repr__(self) -> str:
        def spell(tensors: list[dict[str, Any]]) -> str:
            return ", ".join(f"{each['name']}: {each['type']}[{', '.join(each['dims'])}]" for each in tensors)

        targets = ", ".join(variant["target"] for variant in self.variants)
        return f"<program {self.name}({spell(self.inputs)}) -> ({spell(self.outputs)}) for {targets}>"


def forget_operators() -> None:
    """Let torch's operators ask anew which program they run: schedules were chosen."""
    native.load("_runtime").forget_operators()


@functools.cache
def _torch_types() -> tuple[Any, dict[str, Any]]:
    """torch, and its dtypes by our names."""
    import torch

    return torch, {ours: getattr(torch, theirs) for ours, theirs in TORCH.items()}


def _keep_for(stream: int, tensors: Sequence[Any]) -> None:
    """Tell torch's allocator that CUDA tensors are used on a stream that is not its own."""
    torch, _ = _torch_types()
    for tensor in tensors:
        if getattr(tensor, "is_cuda", False):
            tensor.record_stream(torch.cuda.ExternalStream(stream, device=tensor.device))


def empty(device: Any, kind: str, shape: tuple[int, ...], poison: bool = False, beside: Sequence[Any] = ()) -> Any:
    """A fresh torch tensor on a torch device, or a NumPy array where that is None, of bfloat16 as the arrays
    ``beside`` it have it; poisoned, it holds NaN, -1 or true.
    """
    if device is None:
        import numpy as np

        array = np.empty(shape, getattr(np, "bool_" if kind == "i1" else _NUMPY[kind]))
        if poison:
            array.fill(True if kind == "i1" else 0xFFFF if kind == "bf16" else np.nan if kind[0] == "f" else -1)
        if kind == "bf16" and (own := next((each.dtype for each in beside if is_bfloat16(each)), None)) is not None:
            return array.view(own)
        return array
    torch, types = _torch_types()
    tensor = torch.empty(shape, dtype=types[kind], device=device)
    if poison:
        tensor.fill_(True if kind == "i1" else float("nan") if tensor.is_floating_point() else -1)
    return tensor


def is_bfloat16(array: Any) -> bool:
    """Whether an array is NumPy's, of the bfloat16 of ml_dtypes."""
    return not hasattr(array, "data_ptr") and str(getattr(array, "dtype", "")) == "bfloat16"


def describe(info: Mapping[str, Any], ptx: str, target: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What the compiler gave as a manifest's kernels and programs, and the PTX by file name."""
    file = f"module.{target}.ptx"
    kernels = [describe_kernel(kernel, target, file) for kernel in info["kernels"]]
    return {"kernels": kernels, "programs": info["programs"]}, {file: ptx}


def open_compiled(info: Mapping[str, Any], ptx: str, target: str | None = None) -> Any:
    """The native handle of a library in memory, of what the compiler gave; it is checked as one on disk is."""
    manifest, files = describe(info, ptx, target or info["target"])
    return native.load("_runtime").Library.make("<memory>", json.dumps(manifest), files)


def found_in(programs: Mapping[str, Found], name: str, path: str) -> Found:
    """The program of that name in the library at ``path``. KeyError names those that there are."""
    if name not in programs:
        known = ", ".join(f"'{each}'" for each in programs) or "none"
        raise KeyError(f"the library '{path}' has no program '{name}': it has {known}")
    return programs[name]


def describe_kernel(kernel: Mapping[str, Any], target: str, file: str) -> dict[str, Any]:
    """What the compiler gave of one kernel as a manifest has it: arguments by number, and one variant."""
    arguments = kernel["arguments"]
    return {
        "name": kernel["entry"],
        "arguments": [{"name": f"a{i}", "type": _type(each["type"])} for i, each in enumerate(arguments)],
        "variants": [
            {
                "target": target,
                "ptx": file,
                "entry": kernel["entry"],
                "num_warps": kernel["num_warps"],
                "num_stages": kernel["num_stages"],
                "shared_bytes": kernel["shared_bytes"],
                **({"cluster": [kernel["cluster"], 1, 1]} if "cluster" in kernel else {}),
                "guards": [
                    {"argument": f"a{i}", "divisible_by": each["divisibility"]}
                    for i, each in enumerate(arguments)
                    if each["divisibility"] > 1
                ],
            }
        ],
    }


def _type(text: str) -> str:
    """A kernel argument's type as libraries spell it: "*f16" is "*fp16"."""
    star = "*" if text.startswith("*") else ""
    name = text.lstrip("*")
    return star + OF_IR.get(name, name)
