# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Arrays whose memory holds their values and nothing besides: kernels read memory, so others are refused by name.

A tensor of torch may be more than its memory: a batch of torch.vmap, a value with a tangent, a view that is negated
when it is read, a description without data. A kernel would compute on the bytes that are there, and a recorder of
torch's operations would miss the kernel; both give wrong numbers without a word.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from weft import native


class Objection(NamedTuple):
    """Why no kernel can read an array: what was expected of it ("with strides"), what came, and what to do."""

    expected: str
    given: str
    remedy: str

    def text(self, name: str) -> str:
        """One line for an array of that name, without the remedy."""
        return f"expected {name} {self.expected}, but got {self.given}"


#: what kernels, which use arrays where they are, say of one that ``negated`` tells
NEGATED = Objection("to be in memory as it is", "a view that is negated when it is read", "use .resolve_neg()")


def objection(array: Any, differentiable: bool = False) -> Objection | None:
    """Why kernels cannot read an array of torch or NumPy; None where they can. A ``differentiable`` program sees to
    tangents."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        wrong = _of_tensor(torch, array)
        if wrong is None and not differentiable and dual(array):
            return Objection("without a tangent", "a dual tensor of forward-mode differentiation", _REVERSE)
        return wrong
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.ma.MaskedArray):
        return Objection("to be a plain array", "a masked one", "use .filled(value)")
    return None


def described(array: Any) -> bool:
    """Whether a tensor of torch stands for others: one of a transform of torch.func, a fake or functional one of
    torch.compile and torch.export, or a meta tensor, which has no data. Programs are operators of torch to those."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor):
        return False
    if type(array).__name__ in ("FakeTensor", "FunctionalTensor"):
        return True
    return leveled(array) or torch._is_functional_tensor(array)


def dual(array: Any) -> bool:
    """Whether an array is a tensor of torch with a tangent, of forward-mode differentiation."""
    forward: Any = sys.modules.get("torch.autograd.forward_ad")
    if forward is None or forward._current_level < 0 or not hasattr(array, "data_ptr"):
        return False
    return forward.unpack_dual(array).tangent is not None


def leveled(array: Any) -> bool:
    """Whether an array is a tensor of a transform of torch.func, which may differentiate what is computed of it."""
    torch: Any = sys.modules.get("torch")
    if torch is None or torch._C._functorch.maybe_current_level() is None:
        return False
    return isinstance(array, torch.Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(array)


def differentiated(array: Any) -> bool:
    """Whether an array is a tensor of a transform of torch.func that differentiates what is computed of it, or a batch
    of torch.vmap's of what has gradients or a tangent."""
    if not leveled(array):
        return False
    import torch

    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(array):
        if not functorch.is_batchedtensor(array):
            return True
        array = functorch.get_unwrapped(array)
    return bool(array.requires_grad) or dual(array)


def observed() -> bool:
    """Whether something follows torch's operations around a call: a transform of torch.func, or a mode that records,
    counts or keeps what they give."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return False
    return bool(
        torch._C._get_tracing_state()
        or torch._C._len_torch_dispatch_stack()
        or torch._ops._len_torch_dispatch_stack_pre_dispatch()
        or torch._C._functorch.maybe_current_level() is not None
    )


def promised(array: Any) -> bool:
    """Whether an array is a tensor without data, on the device "meta": of what is computed only shapes are asked."""
    return getattr(array, "is_meta", False) is True and type(array).__name__ != "FakeTensor"


def seen_by_torch(arrays: Iterable[Any]) -> bool:
    """Whether a call of a program on these arrays is to go through operators of torch, and not to run at once."""
    return observed() or any(described(each) or promised(each) or dual(each) for each in arrays)


def refuse(arrays: Iterable[tuple[str, Any]]) -> None:
    """Raise weft.runtime.Error, with the array's name, where kernels cannot read or write one of them in its memory."""
    if recorder := recording():
        raise refused(f"expected a call outside of {recorder}, which does not see what kernels compute")
    for name, array in arrays:
        wrong = objection(array)
        if wrong is None and negated(array):
            wrong = NEGATED
        if wrong is not None:
            raise refused(f"{wrong.text(repr(name))}: {wrong.remedy}")


def changed(arrays: Iterable[Any]) -> None:
    """Tell torch that tensors have other numbers now, so that a backward which kept one of them refuses to go on."""
    torch: Any = sys.modules.get("torch")
    for array in arrays:
        if torch is not None and isinstance(array, torch.Tensor) and not array.is_inference():
            torch.autograd.graph.increment_version(array)


def refused(message: str) -> Exception:
    """A weft.runtime.Error with the status "invalid argument"."""
    error: Exception = native.load("_runtime").Error(message)
    error.status = "invalid argument"  # type: ignore[attr-defined]
    return error


def negated(array: Any) -> bool:
    """Whether a tensor's values are the negatives of what its memory holds, as those of ``z.conj().imag`` are."""
    return hasattr(array, "is_neg") and bool(array.is_neg())


def recording() -> str:
    """What records or replaces torch's operations around a call and would miss a kernel; "" where nothing does."""
    torch = sys.modules.get("torch")
    if torch is None:
        return ""
    if torch.jit.is_tracing():
        return "torch.jit.trace"
    if torch._ops._len_torch_dispatch_stack_pre_dispatch():
        return "make_fx or torch.export"
    for level in range(torch._C._len_torch_dispatch_stack()):
        kind = type(torch._C._get_dispatch_stack_at(level)).__name__
        if kind in _MODES:  # others, which count or print, let operations pass
            return _MODES[kind]
    return ""


_MODES = {
    "FakeTensorMode": "FakeTensorMode",
    "ProxyTorchDispatchMode": "make_fx or torch.export",
    "FunctionalTensorMode": "functionalization",
}
_plain_types: set[type] = set()
_ONE_BY_ONE = "ask for one gradient at a time, without is_grads_batched=True and vectorize=True"
_REVERSE = "use torch.autograd.grad or .backward(), outside of torch.func"


def _of_tensor(torch: Any, tensor: Any) -> Objection | None:
    kind = type(tensor)
    if tensor.is_nested or tensor.layout is not torch.strided:
        layout = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        remedy = "use .to_padded_tensor(0), or pack the sequences and give cu_seqlens" if tensor.is_nested else ""
        return Objection("with strides", f"a tensor of layout {layout}", remedy or "use .to_dense()")
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        if torch._C._functorch.is_batchedtensor(tensor):
            return Objection("to be a plain tensor", "a batch of torch.vmap", "give programs the batch as an axis")
        if torch._C._functorch.is_gradtrackingtensor(tensor):
            return Objection("to be a plain tensor", "one of torch.func's grad, vjp or jvp", _REVERSE)
        return Objection("to be a plain tensor", "one of a torch.func transform", "call it outside of torch.func")
    if kind not in _plain_types:
        if _has_own_operations(torch, kind):
            given = f"a '{kind.__name__}', whose operations are its own"
            return Objection("to be a plain tensor", given, "give the tensors that it is made of")
        _plain_types.add(kind)
    if not tensor.is_cpu and not tensor.is_cuda:
        return Objection(
            "on the CPU or a CUDA device", f"one on '{tensor.device.type}'", "use .to('cpu') or .to('cuda')"
        )
    if not torch._C._has_storage(tensor):  # as those of is_grads_batched=True and jacobian(vectorize=True)
        return Objection("to be a plain tensor", "one without memory, as torch.vmap makes them", _ONE_BY_ONE)
    return None


def _has_own_operations(torch: Any, kind: Any) -> bool:
    """Whether a class of tensors changes what operations do, so that its memory is not all there is to it."""
    disabled = (torch._C._disabled_torch_function_impl, torch._C._disabled_torch_dispatch_impl)
    function = getattr(kind.__torch_function__, "__func__", kind.__torch_function__)
    own_function = function is not torch.Tensor.__torch_function__.__func__ and function not in disabled
    return own_function or kind.__torch_dispatch__ not in disabled
