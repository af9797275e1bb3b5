"""Our CUDA kernels on a machine without a card: compiled by g++ against cuda_on_cpu.h, and called with NumPy's arrays.

A kernel is called as CuPy's RawKernel is, with a grid, a block and arguments. What CuPy cannot check is checked here: that
the arguments are as many as the kernel takes, and each of the type, the dtype and the layout that it reads.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

GPP = shutil.which("g++")
HEADER = Path(__file__).with_name("cuda_on_cpu.h")
POINTED = {"real": None, "Int": "int64", "unsigned char": "bool"}


def signatures(source: str) -> dict[str, list[str]]:
    """The types of each kernel's parameters: {"add_bias": ["const real*", "real*", "Int", "Int"], …}."""
    found = re.findall(r'extern "C" __global__ void (\w+)\(([^)]*)\)', source)
    return {name: [p.strip().rpartition(" ")[0] for p in parameters.split(",")] for name, parameters in found}


def _entry(name: str, types: list[str]) -> str:
    """A function for ctypes that runs a kernel over a grid."""
    parameters = ", ".join(f"{t} a{i}" for i, t in enumerate(types))
    arguments = ", ".join(f"a{i}" for i in range(len(types)))
    call = f"on_cpu(x, y, threads, [&] {{ {name}({arguments}); }});"
    return f'extern "C" void run_{name}(unsigned x, unsigned y, unsigned threads, {parameters}) {{ {call} }}'


def build(source: str, folder: Path) -> ctypes.CDLL:
    """The kernels as a library; what g++ does not accept is a CalledProcessError."""
    entries = [_entry(name, types) for name, types in signatures(source).items()]
    path, library = folder / "kernels.cpp", folder / "kernels.so"
    path.write_text("\n".join([f'#include "{HEADER}"', source, *entries]), encoding="utf-8")
    flags = ["-std=c++14", "-O1", "-Wno-unknown-pragmas", "-shared", "-fPIC"]
    subprocess.run([str(GPP), *flags, str(path), "-o", str(library)], check=True, capture_output=True, text=True)
    return ctypes.CDLL(str(library))


class KernelsOnCpu:
    """The kernels of both dtypes; an instance stands in for `launching.compiled`."""

    def __init__(self, sources: dict[str, str], folder: Path):
        self.called: set[str] = set()
        self.types = signatures(sources["f"])
        self.libraries = {}
        for char, source in sources.items():
            (folder / char).mkdir()
            self.libraries[char] = build(source, folder / char)

    def __call__(self, name: str, char: str) -> Callable[..., None]:
        def run(grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
            types = self.types[name]
            assert len(arguments) == len(types), f"{name} takes {len(types)} arguments, not {len(arguments)}"
            passed = [self.passed(name, a, t, char) for a, t in zip(arguments, types)]
            assert 1 <= len(grid) <= 2 and len(block) == 1 and min(grid) > 0
            assert grid[0] < 2**31 and grid[-1] < 2**16 or len(grid) == 1, "larger than a card allows"
            assert 0 < block[0] <= 1024 and block[0] % 32 == 0, f"{name}: {block} is not made of whole warps"
            self.called.add(name)
            grid = (*grid, 1)[:2]
            getattr(self.libraries[char], f"run_{name}")(*map(ctypes.c_uint, (*grid, *block)), *passed)

        return run

    @staticmethod
    def passed(name: str, argument: Any, wanted: str, char: str) -> Any:
        """The argument for ctypes, if it is what the parameter reads."""
        where = f"{name}: {argument!r} for a parameter {wanted}"
        if wanted == "double":
            assert type(argument) is np.float64, where
            return ctypes.c_double(argument)
        if wanted == "Int" or isinstance(argument, np.integer):
            assert type(argument) is np.int64 and (wanted == "Int" or argument == 0), where
            return ctypes.c_longlong(int(argument))
        pointed = POINTED[wanted.removeprefix("const ").removesuffix("*")]
        assert isinstance(argument, np.ndarray) and argument.dtype == (pointed or char), where
        assert argument.flags.c_contiguous and (argument.flags.writeable or wanted.startswith("const")), where
        return ctypes.c_void_p(argument.ctypes.data)
