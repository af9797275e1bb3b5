"""Use an installed minigrad as its README says: python tests/support/installed.py ENVIRONMENT

The package must come from that environment, not from a checkout. It trains, predicts, exports, and differentiates here, in the
working directory.
"""

import subprocess
import sys
from pathlib import Path


def minigrad(environment: Path, *words: str) -> str:
    """What a command of the environment prints."""
    folder = environment / ("Scripts" if sys.platform == "win32" else "bin")
    done = subprocess.run([folder / "minigrad", *words], capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def main(environment: Path) -> None:
    import minigrad as mg

    assert Path(mg.__file__).is_relative_to(environment), mg.__file__
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x**2).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    assert "translator" in minigrad(environment, "list")
    minigrad(environment, "train", "xor", "--out", "runs/first", "--no-report")
    assert "1" in minigrad(environment, "predict", "runs/first", "1 0")
    minigrad(environment, "export", "runs/first", "xor.html")
    assert "<script>" in Path("xor.html").read_text(encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
