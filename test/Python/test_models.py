# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The papers' models of examples/models: parameters as the papers count them, small ones equal to plain PyTorch forward
and backward, exported, compiled and trained; and at the papers' sizes a forward."""

import importlib
import pathlib
import subprocess
import sys

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "models"
MODELS = ["sema_vision", "sfa_olmoe", "sas_gpt2", "gau_enwik8"]
#: the largest relative difference of a size counted from the size that a paper's name for it gives
NAMED = {"sema_vision": 0.025, "sfa_olmoe": 0.075, "sas_gpt2": 0.02, "gau_enwik8": 0.0}


@pytest.fixture(scope="module", autouse=True)
def beside(request):
    """The folder's modules import one another as they do when one is run."""
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


@pytest.fixture(params=MODELS)
def model(request):
    return importlib.import_module(request.param)


def test_all_models_are_here():
    studies = [path.stem for path in FOLDER.glob("*.py") if "STUDY =" in path.read_text()]
    assert sorted(studies) == sorted(MODELS)


def test_parameters_are_the_papers(model):
    import study

    found = study.counts(model.STUDY)
    assert found.keys() == model.STUDY.sizes.keys()
    for name, wanted in model.STUDY.wanted.items():
        for what, millions in wanted.items():
            assert abs(found[name][what] / millions - 1) <= NAMED[model.STUDY.name], (name, what, found[name][what])


def test_attentions_of_one_size_have_as_many_parameters():
    """The SAS paper's table 2 chooses heads so that all of a size are alike."""
    import sas_gpt2
    import study

    found = study.counts(sas_gpt2.STUDY)
    for size in ("125M", "350M"):
        whole = [found[f"{size} {name}"]["total"] for name in ("MHA", "GQA", "MQA", "SAS")]
        assert max(whole) / min(whole) <= 1.006, whole


def test_small_models_equal_plain_ones(model, seed):
    """Logits, loss, and the gradient of every parameter, beside float64."""
    import study

    found = study.differences(model.STUDY, seed)
    wrong = {name: each for name, each in found.items() if not each.right}
    assert not wrong
    mine = study.twins(model.STUDY, seed)[0]
    assert len(found) >= 0.9 * len(list(mine.parameters()))


def test_a_wrong_model_is_told_from_a_right_one(seed):
    """The check sees a mechanism that is slightly another: SEMA without its mean."""
    import sema_vision
    import study

    sizes = sema_vision.SMALL

    def build(sizes, plain):
        made = sema_vision.Model(sizes, plain)
        if not plain:
            for each in made.modules():
                if isinstance(each, sema_vision.Attention):
                    each.v.register_forward_hook(lambda *args: args[2] * 1.001)
        return made

    wrong = study.Study(**{**vars(sema_vision.STUDY), "build": build, "small": sizes})
    assert any(not each.right for each in study.differences(wrong, seed).values())


def test_exported_and_compiled(model, seed, capsys):
    import study

    study.show_export(model.STUDY, seed)
    assert capsys.readouterr().out.count("equal bits") == 2


def test_trained_on_files(model, seed):
    import study

    found, _ = study.trained(model.STUDY, seed, 3)
    assert len(found.losses) == len(found.plain) == 3
    assert found.apart <= study.AGREEMENT


def test_bytes_are_of_files(seed):
    import machine_bytes

    generator = torch.Generator().manual_seed(seed)
    text = machine_bytes.text(4, 50, generator)
    assert text.shape == (4, 51) and text.min() >= 0 and text.max() < 256
    assert bytes(text[0].tolist()) in bytes(machine_bytes.bytes_of("source").tolist())
    pixels, kinds = machine_bytes.images(6, 32, generator)
    assert pixels.shape == (6, 3, 32, 32) and pixels.abs().max() <= 1 and kinds.max() < len(machine_bytes.KINDS)


def test_the_crossing_lies_between_what_was_tried():
    import sfa_olmoe

    dense = [10.0] * len(sfa_olmoe.RATIOS)
    assert sfa_olmoe.crossing({"SFA": [12.0, 11.0, 9.0, 6.0, 3.0], "dense attention": dense}) == pytest.approx(0.375)
    assert sfa_olmoe.crossing({"SFA": [9.0, 8.0, 7.0, 6.0, 5.0], "dense attention": dense}) == 0
    assert sfa_olmoe.crossing({"SFA": [20.0, 19.0, 18.0, 17.0, 16.0], "dense attention": dense}) is None


def test_merging_pays_the_more_the_more_merges():
    import sfa_olmoe

    found = sfa_olmoe.curves(512, "A100")
    assert sorted(found["SFA"], reverse=True) == found["SFA"]
    assert len(set(found["dense attention"])) == 1


def test_a_wrong_word_is_refused(tmp_path):
    command = [sys.executable, str(FOLDER / "gau_enwik8.py"), "parametres", "--out", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2 and "but got parametres" in ended.stderr


@pytest.mark.slow
def test_at_the_papers_size(model, seed):
    """A forward of SEMA-T over 224 x 224, and of one layer of the others."""
    import study

    found, _, _ = study.whole_difference(model.STUDY, seed)
    assert found <= 1e-5


@pytest.mark.slow
def test_costs_are_drawn(model, tmp_path):
    pictures = model.STUDY.costs("A100", tmp_path)
    assert pictures and all(path.stat().st_size > 10_000 for path in pictures)
