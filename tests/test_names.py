"""Names that people look for: what completion offers, and what they are told who know a thing under PyTorch's name."""

import pytest

import minigrad as mg


def test_completion_offers_every_part_and_nothing_internal():
    names = dir(mg)
    assert {"check", "data", "nn", "optim", "train", "Tensor", "concatenate", "__version__"} <= set(names)
    assert not {"Any", "NAMES", "TYPE_CHECKING", "import_module", "nearest"} & set(names)
    assert [name for name in names if not hasattr(mg, name)] == []


@pytest.mark.parametrize(
    ("module", "name", "told"),
    [
        (mg.nn, "CrossEntropyLoss", "functional.cross_entropy"),
        (mg.nn, "TransformerEncoder", "Encoder"),
        (mg.nn, "Liner", "did you mean 'Linear'"),
        (mg.optim, "CosineAnnealingLR", "Cosine"),
        (mg.optim, "lr_scheduler", "Cosine"),
        (mg.optim, "AdmaW", "did you mean 'AdamW'"),
        (mg.nn.Linear(1, 1), "half", r'to\("float16"\)'),
        (mg.nn.Linear(1, 1), "nothing_such", "'Linear' object has no attribute 'nothing_such'$"),
    ],
)
def test_a_name_that_minigrad_does_not_have_is_answered_with_the_one_it_has(module, name, told):
    with pytest.raises(AttributeError, match=told):
        getattr(module, name)


@pytest.mark.parametrize("package", [mg.nn, mg.optim])
def test_every_counterpart_of_a_name_of_pytorchs_exists(package):
    for name, counterpart in package._PYTORCH_NAMES.items():
        assert name not in package.__all__
        first, _, rest = counterpart.partition("(")[0].partition(",")[0].split()[0].partition(".")
        found = getattr(package, first, None) if first != "a" else package.Schedule
        assert found is not None and (not rest or hasattr(found, rest)), counterpart


def test_a_misspelt_option_of_a_stack_is_answered_with_the_right_one():
    for stack in (mg.nn.Encoder, mg.nn.Decoder):
        with pytest.raises(TypeError, match=f"{stack.__name__} has no option 'dropuot'[^$]*did you mean 'dropout'"):
            stack(1, dim=4, heads=2, dropuot=0.1)
