# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft.heuristics`` and ``weft.autotune``: what is chosen, what is compared, what is kept, what is left as it was."""

import json

import numpy as np
import pytest
import weft
import weft.language as wl
from weft.compiler import launches
from weft.kernels import agreement, arrays, bench
from weft.targets import default_target

rng = np.random.default_rng()


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("WEFT_AUTOTUNE", raising=False)


@weft.jit
def add_one(x, y, n, BLOCK: wl.constexpr, WRONG: wl.constexpr = False):
    at = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    value = wl.load(x + at, mask=at < n) + 1
    if WRONG:
        value += 1
    wl.store(y + at, value + wl.load(y + at, mask=at < n), mask=at < n)


def grid(meta):
    return (weft.cdiv(meta["n"], meta["BLOCK"]),)


CONFIGS = [
    weft.Config({"BLOCK": 64}, num_warps=1),
    weft.Config({"BLOCK": 128}, num_warps=2),
    weft.Config({"BLOCK": 32}),
]


def tuned(configs=CONFIGS, key=("n",), kernel=add_one, **options):
    return weft.autotune(configs, key, **options)(kernel)


def vectors(n=200):
    return rng.standard_normal(n).astype(np.float32), rng.standard_normal(n).astype(np.float32)


def test_every_configuration_runs_once_and_memory_is_as_it_was():
    seen = []
    launches.after.append(lambda launch: seen.append(launch.kernel.signature.constants["BLOCK"]))
    try:
        kernel, (x, y) = tuned(), vectors()
        expected = x + 1 + y
        kernel[grid](x, y, x.size)
    finally:
        launches.after.pop()
    np.testing.assert_allclose(y, expected, rtol=1e-6)  # once, though each configuration added to it
    assert seen[:3] == [64, 128, 32]
    assert seen[3:] == [kernel.best_config.kwargs["BLOCK"]]
    assert kernel.best_config is min(CONFIGS, key=kernel.configs_timings.__getitem__)
    assert set(kernel.configs_timings) == set(CONFIGS)


def test_a_choice_is_kept_by_key_and_type_and_on_disk():
    runs = []
    count = {"configs": CONFIGS, "pre_hook": lambda values, reset_only=False: runs.append(values["BLOCK"])}
    kernel, (x, y) = tuned(**count), vectors()
    kernel[grid](x, y, x.size)
    tried = len(runs)
    assert tried == 4  # and once for reset_only
    kernel[grid](x, y, x.size)
    assert len(runs) == tried
    again = tuned(**count)
    again[grid](x, y, x.size)
    assert len(runs) == tried
    assert again.best_config == kernel.best_config
    kernel[grid](x[:100], y[:100], 100)
    assert len(runs) == 2 * tried
    a, b = x.astype(np.float16), y.astype(np.float16)
    kernel[grid](a, b, a.size)
    assert len(runs) == 3 * tried
    tuned(**count, cache_results=False)[grid](x, y, x.size)
    assert len(runs) == 4 * tried


def test_libraries_take_the_choices_that_calls_made(tmp_path):
    kernel, (x, y) = tuned(), vectors()
    signature = "x:*fp32, y:*fp32, n:i32, WRONG=False"
    with pytest.raises(ValueError, match=r"expected choices of 'add_one' for .* on disk, but found 0"):
        weft.compile(kernel, signature=signature, out=tmp_path / "none")
    kernel[grid](x, y, x.size)
    weft.compile(kernel, signature=signature, out=tmp_path / "lib")
    variant = json.loads((tmp_path / "lib" / "manifest.json").read_text())["kernels"][0]["variants"][0]
    assert variant["constants"]["BLOCK"] == kernel.best_config.kwargs["BLOCK"]
    assert variant["num_warps"] == kernel.best_config.num_warps
    other = next(config for config in CONFIGS if config != kernel.best_config)
    kernel._record({"n": 5}, other, default_target())
    with pytest.raises(ValueError, match=r"expected 'grid' for 'add_one', whose choices by key differ in BLOCK"):
        weft.compile(kernel, signature=signature, out=tmp_path / "several")
    weft.compile(kernel, signature="x:*fp32, y:*fp32, n=5, WRONG=False", out=tmp_path / "one")


def test_libraries_dispatch_by_the_key(tmp_path):
    """What each call takes is that of its n, others' what most have; the grid follows."""

    @weft.jit
    def says(x, n, BLOCK: wl.constexpr):
        at = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
        wl.store(x + at, BLOCK + wl.num_programs(0), mask=at < n)

    kernel = weft.autotune(CONFIGS, key=["n"])(says)
    for n, config in ((200, 0), (100, 0), (130, 1), (50, 2)):
        kernel._record({"n": n}, CONFIGS[config], default_target())
    library = weft.compile(kernel, signature="x:*i32:16, n:i32", out=tmp_path / "lib", grid=["cdiv(n, BLOCK)"])
    guards = [variant["guards"] for variant in library.kernels["says"].variants]
    assert [[guard for guard in each if guard["argument"] == "n"] for each in guards] == [
        [{"argument": "n", "equals": 130}],
        [{"argument": "n", "equals": 50}],
        [],
    ]
    for n, block in ((200, 64), (130, 128), (50, 32), (77, 64)):
        x = np.full(256, -1, np.int32)
        library.launch("says", None, x, n)
        wanted = np.where(np.arange(256) < n, block + weft.cdiv(n, block), -1)
        np.testing.assert_array_equal(x, wanted)


def test_choices_that_no_integer_tells_apart(tmp_path):
    kernel = weft.autotune(CONFIGS, key=["n", "x"])(add_one)
    for number, dtype in enumerate(("float32", "float16")):
        kernel._record({"n": 5, "x": dtype}, CONFIGS[number], default_target())
    signature = "x:*fp32, y:*fp32, n:i32, WRONG=False"
    with pytest.raises(ValueError, match=r"expected one choice of 'add_one' .* but found several: .*fix n or x in"):
        weft.compile(kernel, signature=signature, out=tmp_path / "several")
    with pytest.raises(TypeError, match="expected one to three expressions for 'grid'"):
        weft.compile(add_one, signature=f"{signature}, BLOCK=64", out=tmp_path / "grid", grid="n")


def test_a_configuration_that_disagrees_is_not_used():
    configs = [weft.Config({"BLOCK": 128, "WRONG": True}, num_warps=8), *CONFIGS[:2]]
    kernel, (x, y) = tuned(configs), vectors()
    expected = x + 1 + y
    with pytest.warns(
        RuntimeWarning, match="'add_one' with BLOCK: 128, WRONG: True.* is not used: its results are not"
    ):
        kernel[grid](x, y, x.size)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    assert configs[0] in kernel.rejected
    assert configs[0] not in kernel.configs_timings


def test_one_that_does_not_compile_is_left_out():
    @weft.jit
    def kernel(x, BLOCK: wl.constexpr):
        wl.static_assert(BLOCK > 16, "too small")
        wl.store(x + wl.arange(0, BLOCK), 1.0)

    x = np.zeros(64, np.float32)
    small, right = weft.Config({"BLOCK": 16}), weft.Config({"BLOCK": 64})
    chosen = weft.autotune([small, right], key=[])(kernel)
    chosen[1,](x)
    assert chosen.best_config is right
    assert "too small" in chosen.rejected[small]
    assert (x == 1).all()
    with pytest.raises(weft.CompilationError, match="too small"):
        weft.autotune([small, weft.Config({"BLOCK": 8})], key=[])(kernel)[1,](x)


def test_out_of_bounds_is_left_out():
    @weft.jit
    def kernel(x, BLOCK: wl.constexpr):
        wl.store(x + wl.arange(0, BLOCK), 1.0)

    x = np.zeros(64, np.float32)
    chosen = weft.autotune([weft.Config({"BLOCK": 128}), weft.Config({"BLOCK": 64})], key=[])(kernel)
    chosen[1,](x)
    assert chosen.best_config.kwargs == {"BLOCK": 64}


def test_reset_to_zero_and_restore_value():
    seen = []
    hook = {"do_bench": lambda call, quantiles: (call(), seen.append(y.copy()), 1.0)[2]}
    x, y = vectors()
    first = y.copy()
    tuned(restore_value=["y"], **hook)[grid](x, y, x.size)
    assert all((each == first).all() for each in seen)
    np.testing.assert_allclose(y, x + 1 + first, rtol=1e-6)
    seen.clear()
    x, y = vectors()
    tuned(reset_to_zero=["y"], **hook, cache_results=False)[grid](x, y, x.size)
    for each in [*seen, y]:
        np.testing.assert_allclose(each, x + 1, rtol=1e-6)


def test_pruning():
    x, y = vectors()
    asked = []

    def early(configs, named_args, **kwargs):
        asked.append((named_args["n"], kwargs["grid"]))
        return configs[:2]

    kernel = tuned(prune_configs_by={"early_config_prune": early})
    kernel[grid](x, y, x.size)
    assert asked == [(x.size, grid)]
    assert set(kernel.configs_timings) == set(CONFIGS[:2])
    model = {"perf_model": lambda BLOCK, n, **rest: abs(BLOCK - 32), "top_k": 1}
    kernel = tuned(prune_configs_by=model)
    kernel[grid](x, y, x.size)
    assert kernel.best_config is CONFIGS[2]
    kernel = tuned(prune_configs_by={**model, "top_k": 0.67})
    kernel.nargs = {"n": 1}
    assert len(kernel.prune_configs({})) == 2
    with pytest.raises(ValueError, match="'early_config_prune' of 'add_one' to leave a Config, but got none"):
        tuned(prune_configs_by={"early_config_prune": lambda configs, named, **_: []})[grid](x, y, x.size)
    with pytest.raises(TypeError, match="expected 'top_k' to be an integer"):
        tuned(prune_configs_by={**model, "top_k": 2.5})[grid](x, y, x.size)


def test_hooks_of_configurations_and_of_the_tuner():
    seen = []
    configs = [
        weft.Config({"BLOCK": 64}, pre_hook=lambda values: seen.append(("config", values["BLOCK"], values["n"]))),
        weft.Config({"BLOCK": 128}),
    ]
    x, y = vectors()
    kernel = tuned(
        configs,
        pre_hook=lambda values, reset_only=False: seen.append(("pre", values["BLOCK"], reset_only)),
        post_hook=lambda values, exception: seen.append(("post", values["BLOCK"], exception)),
        do_bench=lambda call, quantiles: (call(), 1.0)[1],
    )
    kernel[grid](x, y, x.size)
    once = [("config", 64, 200), ("pre", 64, False), ("post", 64, None)]
    other = [("pre", 128, False), ("post", 128, None)]
    assert seen == [*once, *once, *other, *other, ("pre", 64, True), ("config", 64, 200)]


def test_errors():
    with pytest.raises(
        ValueError, match=r"expected 'restore_value' to name parameters of 'add_one' \(x, y, n, .*\), but got 'm'"
    ):
        tuned(restore_value=["m"])
    with pytest.raises(TypeError, match="expected a @weft\\.jit function to decorate"):
        weft.autotune(CONFIGS, [])(lambda x: x)


def test_a_constant_that_the_call_gives_too():
    @weft.autotune([weft.Config({"BLOCK": 16}), weft.Config({"BLOCK": 32})], key=["n"])
    @weft.jit
    def filled(x, n, BLOCK: wl.constexpr):
        wl.store(x + wl.arange(0, BLOCK), 1.0, mask=wl.arange(0, BLOCK) < n)

    x = np.zeros(16, np.float32)
    for args, keywords in (((x, 16), {"BLOCK": 16}), ((x, 16, 16), {})):
        with pytest.raises(ValueError, match=r"'filled': expected 'BLOCK' from the configurations alone"):
            filled[(1,)](*args, **keywords)
    filled.fn[(1,)](x, 16, BLOCK=16)
    assert x.all()


def test_a_key_that_no_parameter_has_is_left_out():
    with pytest.warns(RuntimeWarning, match="expected 'key' to name parameters of 'add_one' .*, but got 'm': left out"):
        kernel = tuned(key=["m", "n"])
    x, y = vectors()
    kernel[grid](x, y, x.size)
    assert kernel.keys == ["n"] and len(kernel.cache) == 1


def test_the_first_without_a_trial(monkeypatch):
    monkeypatch.setenv("WEFT_AUTOTUNE", "first")
    kernel, (x, y) = tuned(), vectors()
    kernel[grid](x, y, x.size)
    assert kernel.best_config is CONFIGS[0]
    assert kernel.configs_timings == {}


def test_heuristics():
    seen = []

    def even(args):
        seen.append(dict(args))
        return args["n"] % args["BLOCK"] == 0

    @weft.heuristics({"BLOCK": lambda args: weft.next_power_of_2(args["n"]), "EVEN": even})
    @weft.jit
    def kernel(x, n, BLOCK: wl.constexpr, EVEN: wl.constexpr):
        at = wl.arange(0, BLOCK)
        if EVEN:
            wl.store(x + at, 2.0)
        else:
            wl.store(x + at, 1.0, mask=at < n)

    for n, expected in ((64, 2.0), (50, 1.0)):
        x = np.zeros(n, np.float32)
        kernel[1,](x, n)
        assert (x == expected).all()
    assert [each["BLOCK"] for each in seen] == [64, 64]
    assert kernel.arg_names == ["x", "n", "BLOCK", "EVEN"]
    assert kernel.warmup(np.zeros(8, np.float32), 8, grid=(1,)).signature.constants == {"BLOCK": 8, "EVEN": True}


def test_both_ways_round():
    x, y = vectors()
    after = weft.heuristics({"WRONG": lambda args: args["BLOCK"] > 64})(add_one)
    kernel = weft.autotune(CONFIGS[:1] + CONFIGS[2:], ["n"])(after)
    expected = x + 1 + y
    kernel[grid](x, y, x.size)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    assert kernel.base_fn is add_one.fn
    assert len(kernel.warmup(x, y, 200, grid=grid)) == 2


def test_what_is_compared():
    a = [rng.standard_normal(100).astype(np.float32)]
    groups = {
        "a": a,
        "b": [a[0] * (1 + 1e-6)],
        "c": [a[0] + 1],
        "d": [np.where(a[0] > 0, np.nan, a[0]).astype(np.float32)],
    }
    wrong = agreement.largest_group(groups, [arrays.storage(a[0])])
    assert set(wrong) == {"c", "d"}
    assert "NaN" in wrong["d"]
    integers = {"a": [np.arange(9)], "b": [np.arange(9)], "c": [np.arange(9)[::-1]]}
    assert set(agreement.largest_group(integers, [])) == {"c"}


def test_a_choice_is_of_who_timed_it():
    """One by another do_bench, kept on disk, is not taken for that of a tuner's own."""
    x, y = vectors()
    seen = []

    def later_is_faster(call, quantiles):
        call()
        seen.append(None)
        return 1 / len(seen)

    plain = tuned()
    plain[grid](x, y, x.size)
    asked = tuned(do_bench=later_is_faster)
    asked[grid](x, y, x.size)
    assert len(seen) == len(asked.configs_timings) > 1
    assert asked.best_config == list(asked.configs_timings)[-1]
    again = tuned()
    again[grid](x, y, x.size)
    assert again.best_config == plain.best_config


def test_do_bench_without_a_gpu_is_the_cost_model():
    x, y = vectors(1 << 16)
    small = bench.do_bench(lambda: add_one[grid](x[:64], y[:64], 64, BLOCK=64))
    large = bench.do_bench(lambda: add_one[grid](x, y, x.size, BLOCK=64))
    assert 0 < small < large
    assert bench.do_bench(lambda: None) >= 0
    low, high = bench.do_bench(lambda: add_one[grid](x, y, x.size, BLOCK=64), quantiles=(0.2, 0.8))
    assert low == high > 0
    with pytest.raises(ValueError, match="expected return_mode to be one of"):
        bench.do_bench(lambda: None, return_mode="some")


def test_quantiles_lie_between_times():
    torch = pytest.importorskip("torch")
    x, y = torch.randn(64), torch.randn(64)
    assert bench.do_bench(lambda: add_one[grid](x, y, 64, BLOCK=64), return_mode="all")[0] > 0
    kernel = tuned()
    expected = x + 1 + y
    kernel[grid](x, y, 64)
    torch.testing.assert_close(y, expected)
