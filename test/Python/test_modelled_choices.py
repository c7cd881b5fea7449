# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The choices that ship with Weft: of today's programs, taken where nothing else was chosen, and marked as modelled."""

import importlib.util
import json
import pathlib
import sys

import pytest
import torch
import weft
from weft.programs import choices, modelled
from weft.tuning import records
from weft.tuning.space import parse, role_of, spelled

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDS = records.read(modelled.FILE).records


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("tune_mechanisms", ROOT / "tools" / "tune_mechanisms.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look their types up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def cached(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    choices.forget()
    yield
    choices.forget()


def test_they_are_small_and_for_both_targets():
    assert modelled.FILE.stat().st_size < 64_000
    assert {each["target"] for each in RECORDS} == {"sm_80", "sm_90a"}
    for each in RECORDS:
        assert each["policy"].startswith(modelled.POLICY) and each["device"].endswith("model")
        for place, schedule in each["schedules"].items():
            role_of(place)
            assert parse(spelled(tuple(schedule))) == tuple(schedule)


@pytest.mark.parametrize("each", RECORDS, ids=lambda each: f"{each['name']}, {each['target']}")
def test_they_are_of_todays_programs(tool, each, cached):
    """Where this fails, what programs are spelled like has changed: `tools/tune_mechanisms.py --forms` says so anew."""
    case = next(case for case in tool.cases() if case.name == each["name"])
    program, call = tool.called(case.call)
    plain = program.trace(call).plain
    assert modelled.form_hash(plain) == each["form"]
    assert choices.chosen(plain, each["target"], each["sizes"]) == each["schedules"]
    smaller = dict.fromkeys(each["sizes"], 1)
    assert choices.chosen(plain, each["target"], smaller) == {}
    assert choices.chosen(plain, "sm_120", each["sizes"]) == {}


def attention_of_mine(q, k, v):
    return weft.attention.attend(q, k, v, weft.causal())


def test_what_was_chosen_here_comes_first(cached):
    each = next(each for each in RECORDS if each["name"].startswith("causal attention"))
    size = int(each["name"].split()[-1])
    kind = torch.float16 if "float16," in each["name"] and "bfloat16" not in each["name"] else torch.bfloat16
    program = weft.program(attention_of_mine)  # a name that nothing was tuned of
    tensors = [torch.zeros(2, 16, each["sizes"]["N"], size, dtype=kind) for _ in "qkv"]
    traced = program.trace(program.bind(tuple(tensors), {}))
    assert choices.chosen(traced.plain, each["target"], each["sizes"]) == each["schedules"]
    explained = program.explain(*tensors, target=each["target"])
    assert explained.modelled and set(explained.tuned) == set(each["schedules"])
    place, schedule = next(iter(each["schedules"].items()))
    assert f"{spelled(tuple(schedule))}, modelled" in str(explained)

    own = {
        "guards": [["N", 2048, 4096]],
        "sizes": each["sizes"],
        "schedules": {place: [64, 32, 4, 2]},
        "device": "this",
    }
    choices.choose(choices.program_hash(traced.plain), each["target"], own)
    assert choices.chosen(traced.plain, each["target"], each["sizes"]) == own["schedules"]
    explained = program.explain(*tensors, target=each["target"])
    assert not explained.modelled and "64x32x4x2, tuned" in str(explained)


def test_records_show_prints_them(cached, capsys):
    from weft.cli.__main__ import main

    assert main(["records", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {each["name"] for each in shown} == {each["name"] for each in RECORDS}
    assert main(["records", "show"]) == 0
    assert capsys.readouterr().out.count("right, modelled") == len(RECORDS)
