"""CUDA that the compiler writes on a machine without a card: compiled by g++ against cuda_on_cpu.h, and called with NumPy's arrays,
or those of the fake device.

A kernel is called as CuPy's RawKernel is, with a grid, a block and arguments. What CuPy cannot check is checked here: that
the arguments are as many as the kernel takes, and each of the type, the dtype and the layout that it reads.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .fake_array import FakeArray, computable

GPP = shutil.which("g++")
HEADER = Path(__file__).with_name("cuda_on_cpu.h")
FLAGS = ["-std=c++14", "-O1", "-fwrapv", "-Wno-unknown-pragmas", "-shared", "-fPIC"]


def signatures(source: str) -> dict[str, list[str]]:
    """The types of each kernel's parameters: {"loop": ["const f4*", "f4*", "i8"], …}."""
    found = re.findall(r'extern "C" __global__ void (\w+)\(([^)]*)\)', re.sub("//.*", "", source))
    return {name: [p.strip().rpartition(" ")[0] for p in parameters.split(",")] for name, parameters in found}


def _entry(name: str, types: list[str]) -> str:
    """A function for ctypes that runs a kernel over a grid."""
    parameters = ", ".join(f"{t} a{i}" for i, t in enumerate(types))
    arguments = ", ".join(f"a{i}" for i in range(len(types)))
    return f'extern "C" void run_{name}(Grid grid, {parameters}) {{ on_cpu(grid, [&] {{ {name}({arguments}); }}); }}'


def _compile(source: Path, library: Path) -> str:
    subprocess.run([str(GPP), *FLAGS, str(source), "-o", str(library)], check=True, capture_output=True, text=True)
    return str(library)


@cache
def _load_runtime(folder: Path) -> None:
    """What runs kernels, for all libraries that are loaded after it."""
    ctypes.CDLL(_compile(HEADER.with_suffix(".cpp"), folder / "runtime.so"), ctypes.RTLD_GLOBAL)


def build(source: str, folder: Path, name: str = "kernels") -> ctypes.CDLL:
    """The kernels as a library; what g++ does not accept is a CalledProcessError."""
    _load_runtime(folder)
    entries = [_entry(name, types) for name, types in signatures(source).items()]
    path = folder / f"{name}.cpp"
    path.write_text("\n".join([f'#include "{HEADER}"', source, *entries]), encoding="utf-8")
    return ctypes.CDLL(_compile(path, path.with_suffix(".so")))


class Grid(ctypes.Structure):
    """The size of a grid, and which of its blocks to run."""

    _fields_ = [(name, ctypes.c_uint) for name in ("x", "y", "threads", "first", "end")]


def launcher(library: ctypes.CDLL, name: str, types: list[str]) -> Callable[..., None]:
    """A kernel to be called with a grid, a block and arguments. No block may change what another has changed."""

    def launch(grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        assert len(arguments) == len(types), f"{name} takes {len(types)} arguments, not {len(arguments)}"
        arguments = tuple([computable(a) if isinstance(a, FakeArray) else a for a in arguments])
        passed = [_passed(name, a, t) for a, t in zip(arguments, types)]
        assert 1 <= len(grid) <= 2 and len(block) == 1 and min(grid) > 0
        assert grid[0] < 2**31 and grid[-1] < 2**16 or len(grid) == 1, "larger than a card allows"
        assert 0 < block[0] <= 1024 and block[0] % 32 == 0, f"{name}: {block} is not made of whole warps"
        x, y = (*grid, 1)[:2]
        run = getattr(library, f"run_{name}")
        written = [a for a, t in zip(arguments, types) if t.endswith("*") and t != "i4*" and not t.startswith("const")]
        changed = [np.zeros(a.nbytes, bool) for a in written]
        for k in range(x * y):
            before = [a.tobytes() for a in written]
            run(Grid(x, y, *block, k, k + 1), *passed)
            for array, old, done in zip(written, before, changed):
                here = np.frombuffer(array.tobytes(), "u1") != np.frombuffer(old, "u1")
                assert not (here & done).any(), f"block {k} changed what another had changed: a race on a card"
                done |= here

    return launch


def _passed(name: str, argument: Any, wanted: str) -> Any:
    """The argument for ctypes, if it is what the parameter reads."""
    where = f"{name}: {argument!r} for a parameter {wanted}"
    dtype = np.dtype(wanted.removeprefix("const ").removesuffix("*"))
    if not wanted.endswith("*"):
        assert isinstance(argument, np.generic) and argument.dtype == dtype, where
        return np.ctypeslib.as_ctypes_type(dtype)(argument.item())
    assert isinstance(argument, np.ndarray) and argument.dtype == dtype, where
    assert argument.flags.c_contiguous and (argument.flags.writeable or wanted.startswith("const")), where
    return ctypes.c_void_p(argument.ctypes.data)


class LoopsOnCpu:
    """Generated loops, each compiled when it first runs; an instance stands in for `cuda.compiled`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.made: dict[str, Callable[..., None]] = {}
        self.called: dict[str, None] = {}  # sources

    def __call__(self, source: str) -> Callable[..., None]:
        self.called[source] = None
        if source not in self.made:
            library = build(source, self.folder, f"loop_{len(self.made)}")
            self.made[source] = launcher(library, "loop", signatures(source)["loop"])
        return self.made[source]
