# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The rule that says when a kernel is right: what it lets pass, and each kind of wrong that it must catch."""

from dataclasses import replace

import pytest
import torch
from weft.testing import Domain, accuracy, attention, hold, judge, poisoned, summed


@pytest.fixture
def sample(seed):
    """A float64 reference of 16,384 elements and its rounding to bf16 twice over, as plain operations round."""
    ref = torch.randn(128, 128, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    noise = torch.randn(128, 128, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64)
    return ref, (ref * (1 + noise * 0.002)).bfloat16()


def broken(result):
    return {text.split(":")[0] for text in result.failures}


def test_rounding_passes(sample):
    ref, plain = sample
    assert accuracy(ref.bfloat16(), ref, [plain]).ok
    assert accuracy(plain, ref, [plain]).ok


def test_truncation_is_caught(sample):
    """Every element within the bound on the largest error, all of them on one side."""
    ref, plain = sample
    truncated = (ref.float().view(torch.int32) & -65536).view(torch.float32)
    assert broken(accuracy(truncated, ref, [plain])) >= {"bias"}


@pytest.mark.parametrize("axis", [0, 1], ids=["channels", "rows"])
def test_errors_that_rows_or_channels_share_vary_as_those_do(axis, seed):
    """An error common to a row's elements, or a channel's, positive ones all, is one of 128 random numbers, and not of
    16,384."""
    generator = torch.Generator().manual_seed(seed)
    ref = 1 + torch.rand(128, 128, generator=generator, dtype=torch.float64)
    shared = torch.randn(128, generator=generator, dtype=torch.float64).unsqueeze(axis) * 0.002
    shared -= shared.mean() - 2 * shared.std() / 128**0.5
    plain = ref + torch.randn(128, 128, generator=generator, dtype=torch.float64) * 0.003
    assert "bias" not in broken(accuracy(ref + shared, ref, [plain]))
    assert "bias" in broken(accuracy(ref + shared + 0.0008, ref, [plain]))


def test_one_bad_element_is_caught(sample):
    ref, plain = sample
    out = ref.float()
    out[3, 5] += 0.1
    assert broken(accuracy(out, ref, [plain])) == {"largest error"}


def test_noise_is_caught(sample):
    ref, plain = sample
    noisy = ref + torch.randn_like(ref) * 0.003
    assert broken(accuracy(noisy.float(), ref, [plain])) >= {"mean error"}


def test_nan_and_shape_are_caught(sample):
    ref, plain = sample
    out = ref.float()
    out[0, 0] = torch.nan
    assert "largest error" in broken(accuracy(out, ref, [plain])) and accuracy(out, ref, [plain]).excess == torch.inf
    with pytest.raises(ValueError, match=r"expected a result of shape \(128, 128\), but got \(128, 1\)"):
        accuracy(out[:, :1], ref, [plain])


def test_infinite_elements_must_be_equal(sample):
    ref, plain = sample
    ref, plain = ref.clone(), plain.clone()
    ref[0, 0] = plain[0, 0] = -torch.inf
    assert accuracy(ref.bfloat16(), ref, [plain]).ok
    out = ref.bfloat16()
    out[0, 0] = 0
    assert "infinite elements differ from the reference's" in broken(accuracy(out, ref, [plain]))


def test_scaled_inputs_scale_the_additive_terms():
    ref = torch.zeros(8, dtype=torch.float64)
    plain = torch.zeros(8)
    out = torch.full((8,), 5e-5)
    assert not accuracy(out, ref, [plain], gradient=True).ok
    assert accuracy(out, ref, [plain], gradient=True, input_scale=10).ok
    assert not accuracy(out, ref, [plain], gradient=False, input_scale=4).ok


def test_a_form_that_overflowed_says_nothing(sample):
    ref, plain = sample
    bad = plain.clone()
    bad[0, 0] = torch.inf
    noisy = (ref + torch.randn_like(ref) * 0.1).float()
    assert not accuracy(noisy, ref, [bad, plain]).ok
    with pytest.raises(ValueError, match="without overflow"):
        accuracy(noisy, ref, [bad])


def wrong_by(factor):
    """A result whose largest error is ``factor`` times its limit, and nothing else is wrong."""
    ref = torch.ones(128, 128, dtype=torch.float64)
    plain = ref.float().clone()
    plain[0, 0] += 1e-3
    out = ref.float().clone()
    out[0, 0] += factor * 2.01e-3
    return accuracy(out, ref, [plain, ref.float() + 1e-4])


def test_hold_forgives_what_does_not_repeat():
    draws = iter([[wrong_by(2)], [wrong_by(0.5)], [wrong_by(0.5)]])
    hold(lambda: next(draws))
    assert next(draws, None) is None, "expected two fresh draws"


@pytest.mark.parametrize("factors", [[2, 2], [2, 0.5, 2]])
def test_hold_counts_what_repeats(factors):
    draws = iter([[wrong_by(factor)] for factor in factors])
    with pytest.raises(AssertionError, match="largest error"):
        hold(lambda: next(draws))


def norms(*factors):
    """Draws of results whose relative error is so many times its limit, and nothing else is wrong."""
    right = wrong_by(0.5)
    for factor in factors:
        relative = factor * right.relative_limit
        failures = (f"relative error: {relative} is {factor} of its limit",) if not factor <= 1 else ()
        yield [replace(right, relative=relative, failures=failures)]


def test_hold_compares_the_mean_square_of_relative_errors_that_repeat():
    hold(norms(1.2, 1.2, *[0.8] * 7).__next__)
    hold(norms(1.2, 0.8, 1.2, *[0.8] * 6).__next__)
    draws = norms(1.2, 0.8, 0.8, 5)
    hold(draws.__next__)
    assert next(draws), "expected three draws"
    for factors in [[1.05] * 9, [2.5, 1.2, *[0.8] * 7], [1.2, 1.2, 0.8, float("nan"), *[0.8] * 5]]:
        with pytest.raises(AssertionError, match=r"relative error: .* in 9 draws"):
            hold(norms(*factors).__next__)
    for factors in [[3.1], [1.2, 3.1]]:
        with pytest.raises(AssertionError, match=r"relative error"):
            hold(norms(*factors).__next__)


def test_hold_never_forgives_much():
    draws = iter([{"out": wrong_by(4)}])
    with pytest.raises(AssertionError, match="out: largest error"):
        hold(lambda: next(draws))


def test_hold_compares_the_worst_of_several_draws_of_what_shares_its_errors():
    """What is beyond chance in every draw is wrong, however little; the largest of a few may be by chance."""
    same, half = summed(wrong_by(2)), summed(wrong_by(0.5))
    wide = replace(same, worst_limit=3 * same.worst_limit)
    hold(iter([[same], [half], [wide]]).__next__)
    hold(iter([[same], *[[half]] * 6, [wide], [half]]).__next__)
    hold(iter([[same], *[[half]] * 33, [wide], [half]]).__next__)
    for factors in [[2, *[0.5] * 35], [4] * 36, [2, float("nan"), *[0.5] * 34]]:
        with pytest.raises(AssertionError, match=r"largest error: .* in 36 draws"):
            hold(iter([[summed(wrong_by(factor))] for factor in factors]).__next__)


def test_hold_keeps_draws_that_fill_one_dict():
    """Nine draws of a dict that each of them fills are nine, not the last nine times."""
    same, kept = summed(wrong_by(2)), {}
    draws = iter([*[same] * 3, replace(same, worst_limit=3 * same.worst_limit), *[same] * 5])

    def again():
        kept["out"] = next(draws)
        return kept

    hold(again)


def formula(q, k, v, form="delta"):
    return attention(q, [Domain(k, v)], form=form)[0]


def test_judge_sees_every_gradient(seed):
    generator = torch.Generator().manual_seed(seed)
    tensors = {name: torch.randn(1, 2, 48, 64, generator=generator).half() for name in "qkv"}
    good = judge(formula, formula, tensors)
    assert list(good) == ["out", "d_q", "d_k", "d_v"]
    assert all(result.ok for result in good.values())
    bad = judge(lambda q, k, v: formula(q, k.detach(), v), formula, tensors)
    assert not bad["d_k"].ok and bad["out"].ok and bad["d_v"].ok


def test_fresh_memory_is_poisoned():
    with poisoned():
        assert torch.empty(64).isnan().all() and torch.empty_like(torch.zeros(3)).isnan().all()
        assert torch.zeros(4).new_empty(5).isnan().all()
