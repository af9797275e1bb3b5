"""Run a tutorial or a solution like a plain script: python -W error tests/support/tutorial_runner.py SCRIPT RESULT [MISSING …]

What was compared is written to the file RESULT, as JSON. Packages called missing cannot be imported.
"""

import json
import runpy
import sys
from pathlib import Path

import numpy as np


def main(script: Path, result: Path, missing: list[str]) -> None:
    """Run the script, then write down what `showing.compare` has seen."""
    for name in missing:
        sys.modules[name] = None  # type: ignore[assignment]  # so that importing it fails
    sys.path[0] = str(script.parent)
    runpy.run_path(str(script), run_name="__main__")
    compared = getattr(sys.modules.get("showing"), "COMPARED", {})
    found = {name: [np.asarray(value).tolist() for value in both] for name, both in compared.items()}
    result.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
