"""NVIDIA's compiler of CUDA, which needs no card."""

from __future__ import annotations

import pytest

from .cupy_names import CUPY_IS_INSTALLED

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")


def _missing() -> str | None:
    if not CUPY_IS_INSTALLED:
        return "CuPy is not installed: pip install -e '.[test-cuda]'"
    from cupy_backends.cuda.libs import nvrtc

    try:
        nvrtc.getVersion()
    except Exception as error:
        return f"NVRTC is not installed: pip install -e '.[test-cuda]' ({type(error).__name__})"
    return None


MISSING = _missing()
needs_nvrtc = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


def compile_by_nvrtc(text: str, architecture: str) -> str:
    """The machine code, or for "compute_…" the PTX; what does not compile is an error with the compiler's words."""
    from cupy_backends.cuda.libs import nvrtc

    program = nvrtc.createProgram(text, "kernels.cu", (), ())
    try:
        nvrtc.compileProgram(program, (f"--gpu-architecture={architecture}",))
        made = nvrtc.getPTX(program) if architecture.startswith("compute") else nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError:
        raise SyntaxError(nvrtc.getProgramLog(program)) from None
    finally:
        log = nvrtc.getProgramLog(program)
        nvrtc.destroyProgram(program)
    assert not log.strip("\0\n "), log
    return made if isinstance(made, str) else made.decode("latin-1")
