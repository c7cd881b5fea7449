# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Linear recurrences as mixers: weft.linear_attention and weft.delta_rule. Applied, each goes through the tokens chunk
by chunk with a state [D, Dv] for each head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler import places
from ..language.types import float32
from . import graph, static
from .eager import operation
from .graph import TensorType, agreeing
from .mixers import MIXER, Mixer, Shape, one_batch, packs, real_text, segments, starts
from .sizes import Size, group, unify
from .tensors import Tensor, described, four_axes, lift

_WIDEST = 256


class Recurrence(Mixer):
    """The mixer of a linear recurrence, which also leaves a state."""

    q: Tensor
    state: Tensor | None
    packed: bool

    def final_state(self, values: Any) -> Tensor:
        """The state after the last token, float32 [B, H, D, Dv]; [S, H, D, Dv] of packed sequences, of which an initial
        state says the number S."""
        values = lift(values)
        if not isinstance(values, Tensor):
            raise places.error(f"expected values [B, H, N, Dv], but got {described(values)}")
        four_axes(values, "values")
        with agreeing("expected values that fit the mixer"):
            self.result([values.sizes])
            # A kernel has tiles of so many channels, also where nothing else is asked of the values.
            int(values.sizes[3])
        if self.packed and self.state is None:
            raise places.error(
                "expected an initial_state [S, H, D, Dv] of packed sequences whose final state is asked for",
                "it says how many sequences there are; zeros are no state",
            )
        batch = self.q.sizes[0] if self.state is None else self.state.sizes[0]
        type = TensorType((batch, self.q.sizes[1], self.q.sizes[3], values.sizes[3]), float32)
        return Tensor(graph.tracing().one("attn.final_state", [self.value, values.value], type))


def _recurrence(
    q: Any, k: Any, decay: Any, beta: Any, scale: float | None, initial_state: Any, cu_seqlens: Any
) -> Recurrence:
    for name, x in (("queries", q), ("keys", k)):
        four_axes(x, name)
        static.floating(name, x)
    if k.dtype != q.dtype:
        raise places.error(f"expected keys of the queries' type {q.dtype}, but got {k.dtype}", "use .to(dtype)")
    for rank, name, size in zip((0, 0, 0), ("B", "H", "N"), q.sizes, strict=False):
        size.called(rank, name)
    with agreeing("expected queries and keys of one batch, length and head size"):
        head = int(q.sizes[3])
        for axis in (0, 2, 3):
            unify(q.sizes[axis], k.sizes[axis])
    if head > _WIDEST:
        raise places.error(f"expected heads of at most {_WIDEST} channels, but got {head}")
    with agreeing("expected the key heads to divide the query heads"):
        group(q.sizes[1], k.sizes[1])
    for name, x, ranks in (("log_decay", decay, (3,) if beta is not None else (3, 4)), ("beta", beta, (3,))):
        if x is not None:
            _numbers(name, x, q, ranks)
    lengths = starts(cu_seqlens)
    if lengths:
        one_batch(q.sizes[0])
        packs(cu_seqlens, q.sizes[2])
    if initial_state is not None:
        _check_state(initial_state, q, lengths)
    given = [x for x in (decay, beta, initial_state) if x is not None]
    attributes: dict[str, Any] = {
        "scale": real_text(head**-0.5 if scale is None else static.real("scale", scale), "f32"),
        "operandSegmentSizes": segments(
            1, 1, *(int(x is not None) for x in (decay, beta, initial_state)), len(lengths)
        ),
    }

    def result(values: Sequence[Shape]) -> Shape:
        shape = values[0]
        unify(q.sizes[0], shape[0])
        unify(q.sizes[2], shape[2])
        group(q.sizes[1], shape[1])
        if initial_state is not None:
            unify(initial_state.sizes[3], shape[3])
        return (*q.sizes[:3], shape[3])

    operands = [t.value for t in (q, k, *given, *lengths)]
    made = Recurrence(graph.tracing().one("attn.recurrence", operands, MIXER, attributes), 1, result)
    made.q, made.state, made.packed = q, initial_state, bool(lengths)
    return made


def _numbers(name: str, x: Any, q: Tensor, ranks: tuple[int, ...]) -> None:
    """Check numbers of tokens: [B, H, N], or [B, H, N, D]."""
    shapes = {3: "[B, H, N]", 4: "[B, H, N, D]"}
    if not isinstance(x, Tensor) or x.ndim not in ranks:
        wanted = " or ".join(shapes[rank] for rank in ranks)
        raise places.error(f"expected '{name}' {wanted}, but got {described(x)}")
    static.floating(f"'{name}'", x)
    with agreeing(f"expected '{name}' of the batch, heads and length of the queries"):
        unify(q.sizes[0], x.sizes[0])
        unify(q.sizes[2], x.sizes[2])
        if x.ndim == 3:
            unify(q.sizes[1], x.sizes[1])
        else:
            group(q.sizes[1], x.sizes[1])
            unify(q.sizes[3], x.sizes[3])


def _check_state(state: Any, q: Tensor, lengths: list[Tensor]) -> None:
    shape = "[S, H, D, Dv]" if lengths else "[B, H, D, Dv]"
    if not isinstance(state, Tensor) or state.ndim != 4 or state.dtype != float32:
        raise places.error(f"expected 'initial_state' {shape} of float32, but got {described(state)}")
    with agreeing(f"expected 'initial_state' {shape}"):
        if lengths:
            state.sizes[0].called(1, "S")
            bounds, states = lengths[0].sizes[0].value, state.sizes[0].value
            if bounds is not None and states is not None and bounds != states + 1:
                unify(Size(bounds - 1), Size(states))
        else:
            unify(q.sizes[0], state.sizes[0])
        unify(q.sizes[1], state.sizes[1])
        unify(q.sizes[3], state.sizes[2])
        int(state.sizes[3])


@operation
def linear_attention(
    q: Any,
    k: Any,
    log_decay: Any = None,
    scale: float | None = None,
    *,
    initial_state: Any = None,
    cu_seqlens: Any = None,
) -> Any:
    """The mixer A[n, m] = scale · Σ_d q_nd k_md exp(Σ_{i=m+1..n} log_decay_id) for m <= n.

    q [B, H, N, D], k [B, Hkv, N, D], Hkv a divisor of H; ``log_decay`` is [B, H, N], or [B, H, N, D] for each channel;
    ``scale`` is 1/sqrt(D) unless given. ``initial_state`` float32 [B, H, D, Dv] is what tokens before have left, and
    ``A.final_state(v)`` what these leave. With ``cu_seqlens`` [S+1] int32, of S sequences packed into a batch of 1,
    each has a state of its own.

    Only sums from m+1 to n enter exp, so decays of any strength are safe, -inf too, which forgets all before. Positive
    ones let the state grow; what is too large for its type is not finite.
    """
    return _recurrence(q, k, log_decay, None, scale, initial_state, cu_seqlens)


@operation
def delta_rule(
    q: Any,
    k: Any,
    beta: Any,
    log_decay: Any = None,
    scale: float | None = None,
    *,
    initial_state: Any = None,
    cu_seqlens: Any = None,
) -> Any:
    """The mixer of S_n = exp(log_decay_n) (I - β_n k_n k_nᵀ) S_{n-1} + β_n k_n v_nᵀ, o_n = scale · S_nᵀ q_n.

    ``beta`` and ``log_decay`` are [B, H, N]; all else as in weft.linear_attention. Keys are usually of length 1.
    """
    if beta is None:
        raise places.error("expected 'beta' [B, H, N], but got None", "weft.linear_attention has none")
    return _recurrence(q, k, log_decay, beta, scale, initial_state, cu_seqlens)
