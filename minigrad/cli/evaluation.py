"""`minigrad eval`, `predict`, `average`, `export` and `quantize`: the commands that use a trained run."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MinigradError
from .console import as_command, as_json, printable, table
from .models import commands_of
from .parser import (
    Command,
    Parser,
    Usage,
    count,
    flag_device,
    flag_json,
    flag_threads,
    usage_errors,
    use_threads,
    utf8_text,
)

if TYPE_CHECKING:
    from ..zoo import Loaded

__all__ = ["AVERAGE", "EVAL", "EXPORT", "PREDICT", "QUANTIZE"]

PAGES = (".html", ".htm")
WEIGHTS = ("int8", "float32")  # those of minigrad.zoo.pages, which is loaded when a page is written
FRAMEWORKS = ("onnx", "hf", "numpy", "gguf", "page")
# What a file is for by its ending: the framework that it belongs to, or None where nothing of the kind is written.
ENDINGS = {
    ".onnx": "onnx", ".safetensors": "hf", ".bin": "hf", ".pt": "hf", ".pth": "hf", ".npz": "numpy", ".npy": "numpy", ".py": "numpy",
    ".gguf": "gguf", **dict.fromkeys((
        ".pdf", ".zip", ".tar", ".gz", ".tgz", ".whl", ".json", ".txt", ".md", ".js", ".png", ".svg", ".pkl", ".h5", ".ckpt", ".tflite"
    )),
}  # fmt: skip
LAST = 3  # checkpoints that are averaged by default


def _run_argument(parser: Parser) -> None:
    parser.add_argument(
        "run_directory", metavar="DIR", help="a run's directory, a checkpoint file, or an exported folder"
    )


def _opened(options: Namespace) -> Loaded:
    from ..engine.backend import backend_named
    from ..zoo import load

    with usage_errors():
        backend_named(options.device)
    loaded = load(options.run_directory)
    return loaded if options.device == "cpu" else loaded.to(options.device)


def _eval_arguments(parser: Parser) -> None:
    _run_argument(parser)
    parser.add_argument("--data", metavar="PATH", help="evaluate on this file or folder (default: the run's own data)")
    flag_device(parser)
    flag_threads(parser)
    flag_json(parser)


def _eval(options: Namespace) -> int:
    from ..train.run_data import write_scores

    use_threads(options.threads)
    numbers = _opened(options).evaluate(options.data)
    if options.data is None:
        write_scores(options.run_directory, numbers)
    if options.json:
        print(as_json(numbers))
    else:
        print(table((name.replace("_", " "), _score(name, value)) for name, value in numbers.items()))
    return 0


def _score(name: str, value: Any) -> Any:
    from ..metrics import spelled

    return spelled(name, value) if isinstance(value, float) else value


def _predict_arguments(parser: Parser) -> None:
    _run_argument(parser)
    parser.add_argument(
        "inputs",
        nargs="+",
        type=utf8_text,
        metavar="INPUT",
        help="an input of the model; its README says in which form",
    )
    flag_device(parser)
    flag_threads(parser)
    flag_json(parser)


def _predict(options: Namespace) -> int:
    use_threads(options.threads)
    loaded = _opened(options)
    if loaded.spec.predict is None:
        raise Usage(f"{loaded.spec.name} cannot predict: its commands are {', '.join(commands_of(loaded.spec))}")
    answers = loaded.predict(*options.inputs)
    if options.json:
        print(as_json(answers))
    else:
        for answer in answers:
            print(printable(_answer(answer)))
    return 0


def _answer(answer: Any) -> str:
    """An answer on one line: the values of a dict with their names."""
    return "  ".join(f"{name}: {value}" for name, value in answer.items()) if isinstance(answer, dict) else str(answer)


def _average_arguments(parser: Parser) -> None:
    parser.add_argument("run_directory", metavar="DIR", help="the directory of a run")
    parser.add_argument(
        "--last", type=count, metavar="N", help=f"number of checkpoints (default: {LAST}, or all if there are fewer)"
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the checkpoint to write")


def _average(options: Namespace) -> int:
    from ..train import average_checkpoints, find_checkpoint, read_checkpoint, write_checkpoint
    from ..train.run import checkpoints_of
    from ..zoo.run_arguments import arguments_of

    run = options.run_directory
    arguments = arguments_of(run)
    if os.path.isdir(options.output):
        raise Usage(f"{options.output!r} is a directory: give -o the name of a file")
    count = len(checkpoints_of(run))
    if options.last is not None and options.last > count:
        raise Usage(f"{run!r} holds {count} checkpoint{'s' * (count != 1)}: use --last {max(count, 1)} or less")
    last = options.last or min(LAST, max(count, 1))
    tensors: dict[str, Any] = {f"model.{name}": value for name, value in average_checkpoints(run, last).items()}
    latest = read_checkpoint(find_checkpoint(run, "latest"))
    tensors |= {name: value for name, value in latest.tensors.items() if name == "tokenizer"}
    write_checkpoint(options.output, tensors, {"config": arguments, "step": latest.state["step"], "averaged": last})
    print(printable(f"wrote the mean of {last} checkpoint{'s' * (last > 1)} to {options.output}"))
    print(printable(f"evaluate it: {as_command('eval', options.output)}"))
    return 0


def _export_arguments(parser: Parser) -> None:
    parser.add_argument("run_directory", metavar="DIR", help="a run's directory, or a checkpoint file")
    parser.add_argument(
        "target", nargs="?", metavar="OUT",
        help="a folder that is new, or empty; or a page, whose name ends in .html, that runs the model in any browser",
    )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="OUT", help="the same, as an option")
    parser.add_argument(
        "--to",
        choices=FRAMEWORKS,
        help="write it for another framework, into a folder that is new, or empty; gguf is one file; page is a page with its "
        "weights beside it, for models that are too large for one file",
    )
    parser.add_argument(
        "--weights", choices=WEIGHTS, help="how a page keeps weights (default: int8 if they have more than a megabyte)"
    )
    parser.add_argument(
        "--no-scores", action="store_true", help="do not measure the scores that the README.md of a folder says"
    )


def _export(options: Namespace) -> int:
    from ..zoo import load
    from ..zoo.export import check_new
    from ..zoo.giveaway import first_use, give_away

    if (options.target is None) == (options.output is None):
        raise Usage("where is it to be written? Give a folder, or a page: minigrad export RUN page.html")
    target = options.target or options.output
    _check_ending(options, target)
    if options.to == "page":
        return _export_page_folder(options, target)
    if options.to is not None:
        return _export_to(options, target)
    if os.path.splitext(target)[1].lower() in PAGES:
        return _export_page(options, target)
    if options.weights is not None:
        raise Usage("--weights is for pages, whose names end in .html; a folder keeps the weights as they are")
    check_new(target)
    loaded = load(options.run_directory)
    folder = give_away(loaded, target, scores=not options.no_scores)
    _say_files(folder)
    print(printable(f"use it: {first_use(loaded, str(folder))}"))
    return 0


def _check_ending(options: Namespace, target: str) -> None:
    """Refuse a name that promises something else than what would be written."""
    stem, ending = os.path.splitext(target)
    kind = ending.lower()
    if (
        kind not in (*ENDINGS, *PAGES)
        or kind == ".gguf"
        and options.to == "gguf"
        or kind in PAGES
        and options.to is None
    ):
        return
    to, run = options.to or ENDINGS[kind], options.run_directory
    meant = as_command("export", run, f"{stem}.gguf" if to == "gguf" else "FOLDER", *(["--to", to] if to else []))
    also = "" if to else f", or a page: {as_command('export', run, 'page.html')}"
    raise Usage(f"{target!r} ends in {ending}: {meant}{also}")


def _say_files(folder: Path) -> None:
    files = sorted(path.name for path in folder.iterdir())
    print(printable(f"wrote {', '.join(files)} to {folder}"))


def _quantize_arguments(parser: Parser) -> None:
    _run_argument(parser)
    parser.add_argument("--bits", type=int, choices=(8, 4), default=8, help="of each number of a matrix (default: 8)")
    parser.add_argument("-o", "--out", required=True, metavar="FOLDER", help="a folder that is new, or empty")
    parser.add_argument(
        "--data", metavar="PATH", help="compare both on this file or folder (default: the run's own data)"
    )
    flag_threads(parser)


def _quantize(options: Namespace) -> int:
    from ..nn.quant import compare_quantized
    from ..zoo import load
    from ..zoo.export import check_new, export
    from ..zoo.quantize import quantize

    use_threads(options.threads)
    check_new(options.out)
    loaded = load(options.run_directory)
    small = quantize(loaded, options.bits)

    def scores(model: Any) -> dict[str, float]:
        found = (small if model is small.model else loaded).evaluate(options.data)
        return {name: value for name, value in found.items() if isinstance(value, (int, float))}

    try:
        compare_quantized(loaded.model, small.model, scores)
    except MinigradError as error:
        if options.data is not None:
            raise
        compare_quantized(loaded.model, small.model, lambda model: {})
        print(printable(f"what it costs in quality is not known, give --data: {str(error).splitlines()[0]}"))
    _say_files(export(small, options.out))
    print(printable(f"use it: {as_command('eval', options.out)}"))
    return 0


def _export_to(options: Namespace, target: str) -> int:
    from ..hub.gguf_writing import export_gguf
    from ..hub.writing import export_transformers
    from ..zoo import load
    from ..zoo.frameworks import export_numpy, export_onnx

    if options.weights is not None:
        raise Usage("--weights is for pages; another framework gets the weights as they are")
    write = {"onnx": export_onnx, "hf": export_transformers, "numpy": export_numpy, "gguf": export_gguf}[options.to]
    folder = write(load(options.run_directory), target)
    if folder.is_file():
        print(printable(f"wrote {folder} ({folder.stat().st_size / 1e6:.1f} MB)"))
        return 0
    _say_files(folder)
    return 0


def _export_page(options: Namespace, target: str) -> int:
    from ..zoo import load
    from ..zoo.pages import export_page

    page = export_page(load(options.run_directory), target, options.weights)
    print(printable(f"wrote {page} ({page.stat().st_size / 1e6:.1f} MB)"))
    print("open it in a browser: the model runs there, and nothing needs a network")
    return 0


def _export_page_folder(options: Namespace, target: str) -> int:
    from ..zoo import load
    from ..zoo.pages import export_page_folder

    folder = export_page_folder(load(options.run_directory), target, options.weights)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(printable(f"wrote {folder} ({size:.1f} MB)"))
    print(printable(f"open {folder / 'page.html'} in a browser: the model runs there, and nothing needs a network"))
    return 0


EVAL = Command("evaluate a trained model", "minigrad eval runs/xor --json", _eval_arguments, _eval)
PREDICT = Command(
    "predict with a trained model", "minigrad predict runs/xor '1 0' '1 1' --json", _predict_arguments, _predict
)
AVERAGE = Command(
    "average the weights of a run's last checkpoints",
    "minigrad average runs/xor --last 3 -o mean.safetensors",
    _average_arguments,
    _average,
)
EXPORT = Command(
    "write a trained model as a page, or as a folder to share",
    "minigrad export runs/xor xor.html",
    _export_arguments,
    _export,
)
QUANTIZE = Command(
    "write a trained or imported model with 8 or 4 bits a weight, and say what that costs",
    "minigrad quantize runs/gpt --bits 8 -o small",
    _quantize_arguments,
    _quantize,
)
