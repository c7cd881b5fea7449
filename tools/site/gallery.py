# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The gallery of the site: each example with its source, and with pictures of the patterns that it attends by, which
weft.draw makes of what the example itself hands to Weft. An example that has none says why."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.util
import os
import pathlib
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
GROUPS = {
    "": "From a kernel to a library",
    "patterns": "Patterns of the literature",
    "mechanisms": "The papers' mechanisms",
}
_TOKENS, _HEADING = 64, 72
#: pictures that an example makes itself: the arguments that it is to be run with
_DRAWS = {"12_composite_attention.py": "--out"}
#: pages whose pictures are those of the example that runs the mechanism, or of the mask that a kernel has in it
_AS = {
    "04_flash_attention.py": "patterns/causal.py",
    "05_flash_attention_backward.py": "patterns/causal.py",
    "mechanisms/attention.py": "patterns/causal.py",
    "mechanisms/gau.py": "09_gau.py",
    "mechanisms/sas.py": "08_sas.py",
    "mechanisms/sema.py": "06_sema.py",
}
_UNITS = ("07_sfa.py", "mechanisms/sfa.py")
#: why an example has no picture
WITHOUT = {
    "01_vector_add.py": "No picture: it attends to nothing.",
    "02_softmax.py": "No picture: each row is by itself.",
    "03_matmul.py": "No picture: it attends to nothing.",
    "10_language_models.py": "No picture: its models attend by the patterns of the examples before it.",
    "11_library.py": "No picture: it runs the mechanisms, which have pages of their own.",
    "13_decode.py": "No picture: its pattern is causal, a row at a time.",
}


class _Seen(Exception):
    """Raised in the place of an attention, once its patterns are known."""


def write_gallery(folder: pathlib.Path) -> None:
    """A page an example, and one that shows them all."""
    folder.mkdir(parents=True)
    sys.path.insert(0, str(EXAMPLES))
    index = ["# Gallery", "", "Each example is a file that runs by itself and checks itself.", ""]
    pages = []
    for group, title in GROUPS.items():
        index += [f"## {title}", "", "```{raw} html", '<div class="gallery">']
        for example in sorted((EXAMPLES / group).glob("*.py")):
            name = f"{group + '-' if group else ''}{example.stem}"
            pictures = _pictures(example, folder, name)
            pages.append(name)
            heading, about = _about(example)
            (folder / f"{name}.md").write_text(_page(example, heading, about, pictures), encoding="utf-8")
            shown = (
                f'<img src="../_images/{pathlib.PurePath(pictures[0]).name}" alt="" loading="lazy">' if pictures else ""
            )
            index.append(f'<a href="{name}.html"><b>{heading}</b><br>{shown}</a>')
        index += ["</div>", "```", ""]
    index += ["```{toctree}", ":hidden:", "", *pages, "```", ""]
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")


def _about(example: pathlib.Path) -> tuple[str, str]:
    """The first words of the docstring of an example, and the rest; how to run it is said otherwise."""
    text = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))) or ""
    text = " ".join(text.partition("Run it:")[0].split())
    for end in (r"[:;]", r"\.(?: |$)", r",(?![^(\[]*[)\]])"):
        heading, *rest = re.split(end, text, maxsplit=1)
        if len(heading) <= _HEADING:
            return heading.rstrip(". "), "".join(rest).strip()
    return example.stem.replace("_", " "), text


def _page(example: pathlib.Path, heading: str, about: str, pictures: list[str]) -> str:
    path = example.relative_to(ROOT).as_posix()
    shown = "".join(
        f"```{{image}} {name}\n:alt: {name.removesuffix('.svg')}\n:class: picture\n```\n\n" for name in pictures
    )
    text = f"{about[:1].upper()}{about[1:]}\n\n" if about else ""
    if not pictures:
        text += f"{WITHOUT[example.relative_to(EXAMPLES).as_posix()]}\n\n"
    run = "" if path.startswith("examples/mechanisms") else f"```console\n$ python {path}\n```\n\n"
    source = example.read_text(encoding="utf-8")
    return f"# {heading}\n\n{text}{run}{shown}````python\n{source}````\n"


def _pictures(example: pathlib.Path, folder: pathlib.Path, name: str) -> list[str]:
    """Names of the pictures of an example, drawn into a folder."""
    if example.name in _DRAWS:
        made = folder / name
        command = [sys.executable, str(example), _DRAWS[example.name], str(made)]
        subprocess.run(command, check=True, capture_output=True, env=_environment())
        return [f"{name}/{path.name}" for path in sorted(made.glob("*.svg"))]
    import weft

    place = example.relative_to(EXAMPLES).as_posix()
    if place in _UNITS:
        weft.draw(_units(), folder / f"{name}-0.svg", title="Which tokens (rows) attend to which units (columns)")
        return [f"{name}-0.svg"]
    if place in WITHOUT:
        return []
    drawn = []
    for number, (pattern, n, m) in enumerate(patterns_of(EXAMPLES / _AS.get(place, place))):
        path = folder / f"{name}-{number}.svg"
        weft.draw(pattern, path, n, m)
        drawn.append(path.name)
    return drawn


def _units() -> Any:
    """Which units lie before which tokens, where neighbours are joined at random; SFA joins those that are alike."""
    sfa = importlib.import_module("weft.testing.sfa")  # the package has a function of that name

    draw = random.Random(7)
    units = sfa.units_of([draw.random() < 0.5 for _ in range(_TOKENS)], 20)
    return sfa.seen([[units]], _TOKENS)[..., : len(units)]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "python"), "WEFT_DEVICE": "simulator"}


def patterns_of(example: pathlib.Path) -> list[tuple[Any, int, int]]:
    """The patterns that an example's programs hand to softmax, in order, each with its queries and keys; without
    those that are known when kernels run."""
    import torch

    spec = importlib.util.spec_from_file_location(f"gallery_{example.stem}", example)
    assert spec is not None and spec.loader is not None, "it is a file of Python"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)

    def randn(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
        return torch.randn(shape).to(dtype)

    found: list[tuple[Any, int, int]] = []
    with _recorded(found):
        for program, inputs in _shown(module):
            with contextlib.suppress(_Seen, TypeError, ValueError, RuntimeError):
                tensors = inputs(randn).values()
                static = program.keywords if isinstance(program, functools.partial) else {}
                function = program.func if isinstance(program, functools.partial) else program
                getattr(function, "fn", function)(*tensors, **static)
    return found


def _tokens(x: Any) -> int:
    """How many tokens a tensor has; of one that is traced, as far as that is known."""
    value = getattr(x.shape[2], "value", x.shape[2])
    return _TOKENS if value is None else int(value)


def _shown(module: Any) -> Iterator[tuple[Any, Any]]:
    """The programs of an example, each with what makes its inputs."""
    if hasattr(module, "demonstrations"):
        yield from ((each.program, each.inputs) for each in module.demonstrations())
    elif hasattr(module, "inputs"):
        programs = [each for each in vars(module).values() if getattr(each, "__weft_program__", False)]
        # The function of the example's own name, where that is what calls the program.
        own = getattr(module, module.__name__.removeprefix("gallery_"), None)
        yield from ((each, module.inputs) for each in ([own] if own is not None else programs))


@contextlib.contextmanager
def _recorded(found: list[tuple[Any, int, int]]) -> Iterator[None]:
    """While it lasts, attention gives its patterns to a list, and ends the program."""
    import weft
    from weft.patterns import Pattern

    def softmax(q: Any, *arguments: Any, **options: Any) -> Any:
        domains = [each for each in arguments if isinstance(each, tuple)]
        for k, pattern in domains or [(arguments[0], arguments[1] if len(arguments) > 1 else None)]:
            shown = weft.full() if pattern is None else pattern
            if isinstance(shown, Pattern) and shown not in [one for one, _, _ in found]:
                found.append((shown, _tokens(q), _tokens(k)))
        raise _Seen

    def domain(k: Any, pattern: Any = None, **options: Any) -> Any:
        return k, pattern

    def attend(q: Any, k: Any, v: Any, pattern: Any = None, **options: Any) -> Any:
        starts, same = options.get("cu_seqlens_q"), options.get("cu_seqlens_k")
        if starts is not None and starts is same:  # sequences one after another are documents
            ids = starts.new_tensor(range(len(starts) - 1)).repeat_interleave(starts.diff())[None]
            pattern = weft.document(ids.int(), ids.int()) & pattern
        return softmax(q, k, pattern)

    kept = weft.softmax, weft.domain, weft.attention.attend
    try:
        weft.softmax, weft.domain, weft.attention.attend = softmax, domain, attend  # type: ignore[assignment]
        yield
    finally:
        weft.softmax, weft.domain, weft.attention.attend = kept  # type: ignore[assignment]
