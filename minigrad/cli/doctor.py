"""`minigrad doctor`: the libraries and devices that are found, what is in use, and how to install what is missing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from .. import __version__
from ..errors import MinigradError, install_hint
from .console import as_json, printable, styled, table
from .parser import Command, Parser, flag_json
from .speed import speeds

__all__ = ["DOCTOR", "Finding", "examine"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for; `install` is the command that installs it, where it is missing.

    `wrong` marks a setting with which other commands fail.
    """

    name: str
    found: bool
    detail: str
    install: str | None = None
    wrong: bool = False


def examine() -> Iterator[Finding]:
    """Look for everything; a check that raises counts as missing, with the error."""
    for name, look in _LOOKS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield look(name)
        except MinigradError as error:
            yield Finding(
                name, False, "; ".join(" ".join(line.split()) for line in str(error).splitlines()), wrong=True
            )
        except Exception as error:  # a broken library may raise anything
            yield Finding(name, False, _named(error))


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _python(name: str) -> Finding:
    return Finding(name, True, f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def _minigrad(name: str) -> Finding:
    return Finding(name, True, f"{__version__} in {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}")


def _numpy(name: str) -> Finding:
    import numpy

    return Finding(name, True, numpy.__version__)


def _blas(name: str) -> Finding:
    import numpy.linalg  # noqa: F401  (it loads BLAS, which is only then seen)
    import threadpoolctl

    found = [library for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]
    if not found:
        return Finding(name, False, "its number of threads cannot be set", "pip install --force-reinstall numpy")
    libraries = [
        f"{library['internal_api']} {library['version'] or ''} on {library['num_threads']} thread(s)"
        for library in found
    ]
    return Finding(name, True, ", ".join(libraries))


def _cores(name: str) -> Finding:
    from ..runtime.threads import available_cores, thread_count

    return Finding(
        name, True, f"{thread_count()} in use of {len(available_cores())} (--threads or MINIGRAD_THREADS changes it)"
    )


def _kernels(name: str) -> Finding:
    from ..kernels import implementation

    return Finding(name, True, f"{implementation()} (MINIGRAD_KERNELS changes it)")


def _numba(name: str) -> Finding:
    version = _version("numba")
    if version is None:
        return Finding(name, False, "missing", install_hint("fast"))
    from ..kernels.selection import numba_problem

    problem = numba_problem()
    if problem is not None:
        detail = f"{version} does not work here: {_named(problem)}"
        return Finding(name, False, detail, install_hint("fast", "--upgrade"))
    return Finding(name, True, version)


def _cuda(name: str) -> Finding:
    from ..engine.backend import backend_named
    from ..errors import MissingExtraError

    try:
        backend = backend_named("cuda")
    except MissingExtraError:
        return Finding(name, False, "CuPy is missing", f"{install_hint('cuda12')} (or cuda13), for NVIDIA GPUs")
    except MinigradError:
        return Finding(name, False, f"CuPy {_cupy_version()} finds no GPU", "an NVIDIA driver; nvidia-smi shows it")
    return Finding(name, True, f"CuPy {backend.xp.__version__} with {backend.count()} device(s)")


def _cupy_version() -> str:
    return next(filter(None, map(_version, ("cupy-cuda12x", "cupy-cuda13x", "cupy"))), "")


def _mpi(name: str) -> Finding:
    version = _version("mpi4py")
    if version is None:
        return Finding(name, False, "mpi4py is missing", install_hint("mpi"))
    import mpi4py

    mpi4py.rc.initialize = False  # a check must not start MPI
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return Finding(name, False, f"mpi4py {version} finds no MPI library", install_hint("mpi"))
    library = MPI.Get_library_version().replace("\0", "").split("\n")[0].replace("\t", " ")
    return Finding(name, True, f"mpi4py {version}, {' '.join(library.split())}{_mpiexec()}")


def _mpiexec() -> str:
    """Where mpiexec is, unless it is on the PATH."""
    if shutil.which("mpiexec"):
        return ""
    beside = shutil.which("mpiexec", path=os.path.dirname(sys.executable))
    return f", started by {beside}" if beside else ", but there is no mpiexec on the PATH"


def _library(extra: str) -> Callable[[str], Finding]:
    """Looks for a library by its name, which an extra installs."""

    def look(name: str) -> Finding:
        version = _version(name)
        return Finding(name, bool(version), version or "missing", None if version else install_hint(extra))

    return look


def _graphviz(name: str) -> Finding:
    """Either `dot` or pygraphviz lays out graphs."""
    dot, bundled = shutil.which("dot"), _version("pygraphviz")
    detail = ", ".join(
        filter(None, (dot and f"dot at {dot}", bundled and f"pygraphviz {bundled}, with its own Graphviz"))
    )
    return Finding(name, bool(detail), detail or "missing", None if detail else install_hint("viz"))


def _cache(name: str) -> Finding:
    from ..data.download import cache_directory

    folders = {"": cache_directory()}
    if os.environ.get("NUMBA_CACHE_DIR"):
        folders["; compiled kernels: "] = Path(os.environ["NUMBA_CACHE_DIR"])
    own = os.environ.get("MINIGRAD_DATA")
    places = "".join(f"{label}{folder}{_state(folder)}" for label, folder in folders.items())
    return Finding(name, all(map(_is_writable, folders.values())), f"{places}{f'; own files: {own}' if own else ''}")


def _state(folder: Path) -> str:
    if not _is_writable(folder):
        return " (cannot be written to)"
    return "" if folder.is_dir() else " (not made yet)"


def _is_writable(folder: Path) -> bool:
    """Whether files can be created there, as far as permissions say."""
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def _models(name: str) -> Finding:
    from ..zoo.registry import entries

    found = entries()
    broken = [entry.name for entry in found if entry.spec is None]
    detail = f"{len(found) - len(broken)} usable" + (f"; broken: {', '.join(broken)}" if broken else "")
    return Finding(name, not broken, detail, "see `minigrad list` for what is wrong with them" if broken else None)


_LOOKS: dict[str, Callable[[str], Finding]] = {
    "python": _python,
    "minigrad": _minigrad,
    "numpy": _numpy,
    "blas": _blas,
    "cores": _cores,
    "kernels": _kernels,
    "numba": _numba,
    "cuda": _cuda,
    "mpi": _mpi,
    "matplotlib": _library("viz"),
    "graphviz": _graphviz,
    "sacrebleu": _library("metrics"),
    "cache": _cache,
    "models": _models,
}


BRINGS = {  # what is better with it
    "numba": "kernels compiled for this machine: training is 2 to 4 times as fast",
    "cuda": "training on an NVIDIA card",
    "mpi": "training in several processes, and on several machines",
    "matplotlib": "pictures as PNG and PDF (SVG and pages need nothing)",
    "graphviz": "graphs laid out as pictures and pages",
    "sacrebleu": "BLEU and chrF in evaluations of translators",
}


def _arguments(parser: Parser) -> None:
    parser.add_argument("--speed", action="store_true", help="measure how fast this machine is, in ten seconds")
    flag_json(parser)


def _doctor(options: Namespace) -> int:
    findings = list(examine())
    wrong = [finding.name for finding in findings if finding.wrong]
    if options.json:
        print(
            as_json({finding.name: {k: v for k, v in asdict(finding).items() if k != "name"} for finding in findings})
        )
        return 1 if wrong else 0
    lines = table((finding.name, "yes" if finding.found else "no", finding.detail) for finding in findings).splitlines()
    for finding, line in zip(findings, lines):
        print(line if finding.found else styled(line, "bad" if finding.wrong else "faint"))
    wanted = [
        row
        for finding in findings
        if finding.install
        for row in ((f"  {finding.name}", BRINGS.get(finding.name, "")), ("", finding.install))
    ]
    print("\nnothing is missing" if not wanted else f"\nto get what is missing (all of it is optional):\n{printable(table(wanted))}")  # fmt: skip
    if options.speed:
        print("\nhow fast this machine is:", flush=True)
        for what, result in speeds():
            print(f"  {what:20}  {result}", flush=True)
    else:
        print("\nhow fast this machine is: minigrad doctor --speed (ten seconds)")
    if wrong:
        print(f"\nwrong, and to be mended first: {', '.join(wrong)}")
    return 1 if wrong else 0


DOCTOR = Command(
    "show what is installed, what is in use, and what could be added", "minigrad doctor --json", _arguments, _doctor
)
