# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How right is right: a result is held against float64, beside what plain framework operations reach.

The bounds on the largest error are those of FlashAttention's own test suite; the bounds on the mean error and on the
bias catch kernels whose every element is just inside the first bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

_BIAS_STANDARD_ERRORS = 6.0
#: of the mean of rows, or of channels: a row's elements share what one dS or one normaliser was rounded by, a channel's
#: what one value that many rows take was
_BIAS_SHARED_STANDARD_ERRORS = 3.0
_SMALL = 4096  # below this many elements, means are too noisy for the tight bounds

#: relative to a reference that is 0 but for float64's rounding (the gradient of what moves all of a row's scores
#: alike), errors are this large or larger, and say nothing
_NOTHING = 1e6


@dataclass(frozen=True)
class Accuracy:
    """The errors of a result and of plain operations against float64, and which bounds were broken."""

    worst: float
    """max |out - ref|"""
    worst_plain: float
    """the same of the worst plain form"""
    worst_limit: float
    mean: float
    mean_plain: float
    mean_limit: float
    bias: float
    """|mean((out - ref) · sign ref)|"""
    bias_plain: float
    bias_limit: float
    relative: float
    """‖out - ref‖ / ‖ref‖"""
    relative_limit: float
    failures: tuple[str, ...] = field(default=())
    shares_errors: bool = False
    """whether the elements' errors are few random numbers (``summed``)"""

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Each error and its limit."""
        return {
            "largest error": (self.worst, self.worst_limit), "mean error": (self.mean, self.mean_limit),
            "bias": (self.bias, self.bias_limit), "relative error": (self.relative, self.relative_limit),
        }  # fmt: skip

    @property
    def ok(self) -> bool:
        """Whether every bound holds."""
        return not self.failures

    @property
    def closeness(self) -> float:
        """The largest error over its limit."""
        return _factor(self.worst, self.worst_limit)

    @property
    def excess(self) -> float:
        """The most that any error exceeds its bound by, as a factor;

        Infinite for NaN, at most 1 when every bound holds.
        """
        if "infinite elements differ from the reference's" in self.failures:
            return math.inf
        return max(_factor(error, limit) for error, limit in self.bounds.values())


def _factor(error: float, limit: float) -> float:
    if math.isnan(error):
        return math.inf
    return error / limit if limit else math.inf if error else 0.0


def accuracy(
    out: torch.Tensor,
    ref: torch.Tensor,
    plain: Sequence[torch.Tensor],
    *,
    gradient: bool = False,
    input_scale: float = 1.0,
    products_as_given: bool = True,
) -> Accuracy:
    """Hold ``out`` against the float64 ``ref`` and against ``plain``, the same formula in plain operations.

    ``plain`` holds one or more forms of the formula; the worst of them counts. ``gradient`` takes the wider bound for
    gradients,
    ``input_scale`` is the factor that the inputs were multiplied with. ``products_as_given`` says that the operands
    enter their product
    unrounded, in which case a bf16 output must be within 0.4 % of the reference in norm.

    Elements where the reference is -inf or +inf must be equal; they take no part in the other bounds. A NaN in
    ``out`` breaks every bound. A plain form that overflowed says nothing; one at least must not.
    """
    if out.shape != ref.shape:
        raise ValueError(f"expected a result of shape {tuple(ref.shape)}, but got {tuple(out.shape)}")
    finite = torch.isfinite(ref)
    failures: list[str] = []
    if not torch.equal(out.detach().double()[~finite], ref[~finite]):
        failures.append("infinite elements differ from the reference's")
    got = _Errors.of(out, ref, finite)
    forms = [_Errors.of(form, ref, finite) for form in plain if torch.isfinite(form[finite]).all()]
    if not forms:
        raise ValueError("expected a plain form without overflow; scale the inputs down")
    worst_plain = max(form.worst for form in forms)
    mean_plain = max(form.mean for form in forms)
    bias_plain = max(form.bias for form in forms)
    relative_plain = max(form.relative for form in forms)

    factor = 3.0 if gradient else 2.0
    additive = 1e-5 * (input_scale**2 if gradient else input_scale)
    worst_limit = factor * worst_plain + additive
    mean_limit = (1.1 if got.count >= _SMALL else 1.5) * mean_plain + 1e-6
    bias_limit = bias_plain + got.bias_chance + 1e-4 * got.mean_reference
    bf16 = out.dtype == torch.bfloat16 and products_as_given and not gradient
    relative_limit = max(0.004 if bf16 else 1.1 * relative_plain, got.least_relative * additive)

    if relative_plain > _NOTHING:
        relative_limit = math.inf
    if gradient:  # the rule bounds the mean error of outputs only
        mean_limit = math.inf
    if got.count < _SMALL:
        bias_limit = math.inf
    result = Accuracy(
        got.worst, worst_plain, worst_limit, got.mean, mean_plain, mean_limit,
        got.bias, bias_plain, bias_limit, got.relative, relative_limit,
    )  # fmt: skip
    return replace(result, failures=(*failures, *_broken(result.bounds)))


def _broken(bounds: Mapping[str, tuple[float, float]]) -> list[str]:
    """In words, each error that exceeds its limit; NaN does."""
    return [
        f"{name}: expected at most {limit:.3g}, but got {error:.3g}"
        for name, (error, limit) in bounds.items()
        if not error <= limit
    ]


@dataclass(frozen=True)
class _Errors:
    worst: float
    mean: float
    bias: float
    bias_chance: float
    """what the bias may be by chance"""
    mean_reference: float
    relative: float
    least_relative: float
    """the relative error of 1 in every element: what an additive bound allows where the reference is all but zero"""
    count: int

    @staticmethod
    def of(out: torch.Tensor, ref: torch.Tensor, finite: torch.Tensor) -> _Errors:
        difference = (out.detach().double() - ref)[finite]
        expected = ref[finite]
        count = difference.numel()
        if count == 0:
            return _Errors(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0)
        signed = difference * expected.sign()
        norm = float(expected.norm())
        return _Errors(
            worst=float(difference.abs().max()) if not difference.isnan().any() else math.nan,
            mean=float(difference.abs().mean()),
            bias=abs(float(signed.mean())),
            bias_chance=_bias_chance(signed, finite),
            mean_reference=float(expected.abs().mean()),
            relative=float(difference.norm()) / norm if norm else float(difference.norm()),
            least_relative=math.sqrt(count) / norm if norm else math.sqrt(count),
            count=count,
        )


def _bias_chance(signed: torch.Tensor, finite: torch.Tensor) -> float:
    """How far from 0 the mean of unbiased errors may lie: six standard errors if each element errs by itself, three of
    the mean of rows or of channels, the last axis, if those do. ``signed`` holds the errors where ``finite`` is true.
    """
    chance = _BIAS_STANDARD_ERRORS * _standard_error(signed)
    if finite.dim() < 2 or not finite.all():
        return chance
    by_row = signed.view(-1, finite.shape[-1])
    shared = max(_standard_error(by_row.mean(1)), _standard_error(by_row.mean(0)))
    return max(chance, _BIAS_SHARED_STANDARD_ERRORS * shared)


def _standard_error(sample: torch.Tensor) -> float:
    """Of the mean; 0 of a single number."""
    return float(sample.std()) / math.sqrt(sample.numel()) if sample.numel() > 1 else 0.0


def summed(result: Accuracy) -> Accuracy:
    """The result as a sum over all tokens, for gradients of parameters: its elements share their errors, such as what
    rounding leaves of a row's ds, which should sum to 0, times a constant of all keys. They are few random numbers, the
    plain form's too: 1.1 times its relative error is within chance, their mean varies as one of them does (three times
    the plain form's, as of the largest error), and ``hold`` compares the worst of several draws.
    """
    wide = replace(
        result, relative_limit=math.inf, bias_limit=result.bias_limit + 2 * result.bias_plain, shares_errors=True
    )
    others = [text for text in result.failures if text.split(":")[0] not in wide.bounds]
    return replace(wide, failures=(*others, *_broken(wide.bounds)))


def hold(draw: Callable[[], Sequence[Accuracy] | Mapping[str, Accuracy]]) -> None:
    """Raise AssertionError unless every result of ``draw`` is right.

    ``draw`` makes fresh random inputs at each call and judges the results on them, by name or in order. One draw in
    some two hundred exceeds a bound by chance, so an excess below three times the limit counts only if one of two
    fresh draws exceeds the same bound of the same result. Few rows, of scores far apart, make most of a norm: of a
    relative error alone that exceeds its limit twice the mean square of nine draws is compared. Of a result whose
    elements share their errors (``summed``) it counts if the largest error of the three draws exceeds the largest
    limit, and that of nine does, and of 36: of two random numbers of one size the one is more than three times the
    other in one draw of five, the largest of nine in one of two hundred, and of 36 in one of a hundred thousand.
    """
    draws = [_named(draw())]
    first = _excesses(draws[0])
    alone = {key for key in first if not draws[0][key[0]].shares_errors}
    if any(first[key][0] >= 3 for key in alone):
        raise AssertionError("; ".join(text for _, text in first.values()))
    norms: set[tuple[str, str]] = set()
    for _ in range(2 if first else 0):
        draws.append(_named(draw()))
        again = _excesses(draws[-1])
        repeated = again.keys() & alone
        norms |= {key for key in repeated if key[1] == "relative error" and again[key][0] < 3}
        if certain := repeated - norms:
            raise AssertionError("; ".join(again[key][1] for key in sorted(certain)))
    if norms:
        draws.extend(_named(draw()) for _ in range(9 - len(draws)))
        if wrong := _exceeding_together(draws, norms):
            raise AssertionError("; ".join(wrong))
    sums = first.keys() - alone
    for count in (9, 36):
        if _exceeding(draws, sums):
            draws.extend(_named(draw()) for _ in range(count - len(draws)))
    if wrong := _exceeding(draws, sums):
        raise AssertionError("; ".join(wrong))


def _exceeding(draws: Sequence[Mapping[str, Accuracy]], keys: Collection[tuple[str, str]]) -> list[str]:
    """Of these results' bounds those that the largest error of all draws exceeds though it be the largest limit."""
    wrong = []
    for name, bound in sorted(keys):
        errors, limits = zip(*(each[name].bounds[bound] for each in draws), strict=True)
        most = max(limits)
        if not all(error <= most for error in errors):  # NaN fails too
            text = f"{name}: {bound}: expected at most {most:.3g} in {len(draws)} draws"
            wrong.append(f"{text}, but got {max(errors):.3g}")
    return wrong


def _exceeding_together(draws: Sequence[Mapping[str, Accuracy]], keys: Collection[tuple[str, str]]) -> list[str]:
    """Of these results' bounds those that the errors of all draws exceed together, in their mean squares."""
    wrong = []
    for name, bound in sorted(keys):
        squares = torch.tensor([each[name].bounds[bound] for each in draws], dtype=torch.float64).square()
        error, limit = squares.mean(0).sqrt().tolist()
        if not error <= limit:  # NaN fails too
            wrong.append(f"{name}: {bound}: expected at most {limit:.3g} in {len(draws)} draws, but got {error:.3g}")
    return wrong


def _named(results: Sequence[Accuracy] | Mapping[str, Accuracy]) -> dict[str, Accuracy]:
    """By name, in a dict of its own: the next draw may fill the same one again."""
    return dict(results if isinstance(results, Mapping) else {f"result {i}": x for i, x in enumerate(results)})


def _excesses(results: Mapping[str, Accuracy]) -> dict[tuple[str, str], tuple[float, str]]:
    """Every broken bound, by the result's name and the bound's: by what factor, and in words."""
    return {
        (name, text.split(":")[0]): (result.excess, f"{name}: {text}")
        for name, result in results.items()
        for text in result.failures
    }
