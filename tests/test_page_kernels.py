"""The kernels of exported pages, in a real browser: on every sample of the registry that they can compute they give what the ops give."""

import base64
import json

import numpy as np
import pytest
from support.kernel_samples import SAMPLES as FUSED_SAMPLES
from support.samples import SAMPLES

import minigrad as mg
import minigrad.nn.functional  # noqa: F401  (its functions are in the registry once it is imported)
from minigrad.engine.op import OPS
from minigrad.engine.tensor import Tensor
from minigrad.errors import MinigradError
from minigrad.kernels.registry import FUSED
from minigrad.ops.composite import COMPOSITES
from minigrad.viz.drawing.page import as_data
from minigrad.web.program import RUNTIME, Programs, kernels, runtime, traced

FUNCTIONS = {**OPS, **COMPOSITES}
RUN = """(cases) => JSON.parse(cases).map(({ name, form, tensors, content, inputs }) => {
  try {
    const program = new Program(form, tensorsOf(tensors, bytesOf(content)));
    const made = program.run(inputs.map(({ dtype, shape, data }) => new NDArray(dtype, shape, storeOf(dtype).from(data.map(Number)))));
    return made.map(({ dtype, shape, data }) => ({ dtype, shape, data: Array.from(data, String) }));
  } catch (error) {
    return `${name}: ${error.stack}`;
  }
})"""


def several(result):
    return [t for t in (result if isinstance(result, (tuple, list)) else (result,)) if isinstance(t, Tensor)]


def registry_cases():
    """Calls of ops and composites on float32: the function, and its floating arrays."""
    for name, samples in SAMPLES.items():
        for sample in samples:
            function = FUNCTIONS.get(name)
            is_single = "float32" in sample.dtypes or not sample.leaves
            if function is not None and is_single and all(leaf.size for leaf in sample.leaves):
                arrays = [leaf.astype("float32") for leaf in sample.leaves]
                yield name, lambda *given, s=sample, f=function: s.call(f, list(given), mg.tensor), arrays


def fused_cases():
    """Calls of fused ops: floating arrays are given, all else stays."""
    for name, samples in FUSED_SAMPLES.items():
        for inputs, attrs in samples:
            if attrs.get("dropout_p") or name == "dropout":
                continue
            places = [i for i, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]

            def call(*given, inputs=inputs, attrs=attrs, places=places, name=name):
                whole = [mg.tensor(x) if isinstance(x, np.ndarray) else x for x in inputs]
                for place, x in zip(places, given):
                    whole[place] = x
                return FUSED[name](*whole, **attrs)

            yield name, call, [inputs[i].astype("float32") for i in places]
    table = mg.nn.Packed.from_floats(np.linspace(-1, 1, 5 * 40).reshape(5, 40), "q8_0")
    yield "embedding", lambda: table.rows(mg.tensor([[3, 0], [4, 4]])), []


@pytest.fixture(scope="module")
def compared(browser):
    """What the browser made of each case, beside what the ops made; and which kernels ran."""
    cases, wanted, ran = [], [], set()
    for name, call, arrays in [*registry_cases(), *fused_cases()]:
        try:
            with np.errstate(all="ignore"):
                graph = traced(call, arrays)
                outs = several(call(*map(mg.tensor, arrays)))
        except (MinigradError, AssertionError):
            continue  # what cannot be traced, or has no kernel, is refused when a page is written
        programs = Programs()
        programs.add("f", graph)
        ran |= {step.op.name for step in graph.steps}
        inputs = [{"dtype": str(a.dtype), "shape": a.shape, "data": [str(x) for x in a.reshape(-1)]} for a in arrays]
        inputs = json.loads(json.dumps(inputs).replace('"inf"', '"Infinity"').replace('"-inf"', '"-Infinity"'))
        content = base64.b64encode(bytes(programs.content)).decode()
        form = json.loads(as_data(programs.forms["f"]))
        cases.append({"name": name, "form": form, "tensors": programs.entries, "content": content, "inputs": inputs})
        wanted.append((name, [out.numpy() for out in outs]))
    page = browser.new_page()
    page.add_script_tag(content=runtime(*RUNTIME))
    found = page.evaluate(RUN, json.dumps(cases))
    known = set(page.evaluate("Object.keys(KERNELS)"))
    page.close()
    return list(zip(wanted, found)), ran, known


def test_python_knows_which_kernels_a_page_has(compared):
    _, _, known = compared
    assert known & {*OPS, *FUSED} == kernels()
    assert known <= {*OPS, *FUSED}


def test_every_kernel_is_tried(compared):
    pairs, ran, _ = compared
    assert kernels() - ran == set()
    assert len(pairs) > 700


def test_every_kernel_gives_what_the_op_gives(compared):
    pairs, _, _ = compared
    wrong = []
    for (name, wanted), found in pairs:
        if isinstance(found, str):
            wrong.append(found)
            continue
        for out, made in zip(wanted, found, strict=True):
            numbers = np.array([{"true": 1, "false": 0}.get(x, x) for x in made["data"]], "float64").reshape(
                made["shape"]
            )
            is_alike = made["dtype"] == str(out.dtype) and tuple(made["shape"]) == out.shape
            scale = float(np.abs(out[np.isfinite(out)]).max(initial=1)) if out.dtype.kind == "f" else 1
            if not is_alike or not np.allclose(numbers, out, rtol=1e-4, atol=4e-6 * scale, equal_nan=True):
                wrong.append(
                    f"{name}: {made['dtype']}{made['shape']} {made['data'][:4]}, not {out.dtype}{out.shape} {out.reshape(-1)[:4]}"
                )
    assert wrong == [], "\n".join(wrong)
