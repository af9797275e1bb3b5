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
        (mg.nn, "LazyLinear", "layers that wait for their sizes"),
        (mg.nn.functional, "sofmax", "did you mean 'softmax'\\?$"),
        (mg.nn.init, "xavier", "did you mean 'xavier_normal_' or 'xavier_uniform_'"),
        (mg.autograd, "gard", "did you mean 'grad'"),
        (mg.data, "pairs", "did you mean 'encode_pairs' or"),
        (mg, "unsqueeze", "minigrad calls it expand_dims"),
        (mg, "hamming", r"not offered: windows depend on a length alone: mg.tensor\(np.hamming\(n\)\)"),
        (mg, "nothing_such", r"no attribute 'nothing_such': dir\(minigrad\) lists what there is$"),
        (mg.nn, "TransformerEncoder", "Encoder"),
        (mg.nn, "Liner", "did you mean 'Linear'"),
        (mg.optim, "GradScaler", "MixedPrecision"),
        (mg.optim, "SparseAdam", "not offered: sparse tensors"),
        (mg.optim, "AdmaW", "did you mean 'AdamW'"),
        (mg, "jit", "minigrad calls it compile$"),
        (mg, "numpy", "minigrad itself"),
        (mg, "device", r"tensors have it: x\.device$"),
        (mg.autograd, "Function", "mg.op, or mg.custom_vjp"),
        (mg.autograd, "no_grad", "minigrad calls it mg.no_grad$"),
        (mg.nn.init, "glorot_uniform", "minigrad calls it xavier_uniform_$"),
        (mg.nn.utils, "clip_grad_norm", "minigrad calls it clip_grad_norm_$"),
        (mg.nn.utils, "weight_nrom", "did you mean 'weight_norm'"),
        (mg.nn.functional, "swish", "minigrad calls it silu$"),
        (mg.random, "PRNGKey", "minigrad calls it mg.manual_seed$"),
        (mg.data, "get_worker_info", "it is not needed: workers are threads"),
        (mg.optim, "clip_by_global_norm", "nn.utils.clip_grad_norm_"),
        (mg.ones(2), "at", r"a Tensor has no attribute 'at'; minigrad calls it x\[i\] = y, or index_put"),
        (mg.ones(2), "clamp_", r"functions that write in place under a name of their own: write x\[...\] = f\(x\)"),
        (mg.ones(2), "expand_as", r"broadcast_to\(y.shape\)"),
        (mg.ones(2), "unbind", "minigrad calls it unstack"),
        (mg.nn.Linear(1, 1), "half", r'to\("float16"\)'),
        (mg.nn.Linear(1, 1), "nothing_such", "'Linear' object has no attribute 'nothing_such'$"),
    ],
)
def test_a_name_that_minigrad_does_not_have_is_answered_with_the_one_it_has(module, name, told):
    with pytest.raises(AttributeError, match=told):
        getattr(module, name)


MODULES = (
    mg,
    mg.nn,
    mg.nn.functional,
    mg.nn.init,
    mg.optim,
    mg.autograd,
    mg.data,
    mg.decode,
    mg.metrics,
    mg.train,
    mg.fft,
    mg.linalg,
    mg.array_api,
)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_module_shows_its_public_names_and_nothing_that_it_imports(module):
    names = {name for name in dir(module) if not name.startswith("__")}
    parts = {"check", "compile", "hub", "tokenizers", "viz", "zoo", *(m.__name__.rpartition(".")[2] for m in MODULES)}
    assert names - parts <= {*module.__all__}
    assert [name for name in names if not hasattr(module, name)] == []


def test_a_misspelt_option_of_a_stack_is_answered_with_the_right_one():
    for stack in (mg.nn.Encoder, mg.nn.Decoder):
        with pytest.raises(TypeError, match=f"{stack.__name__} has no option 'dropuot'[^$]*did you mean 'dropout'"):
            stack(1, dim=4, heads=2, dropuot=0.1)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: mg.nn.MultiHeadAttention(embed_dim=4, num_heads=2),
            r"'embed_dim'\n.*\(dim, heads, kv_heads.*\n.*write dim=",
        ),
        (lambda: mg.nn.Linear(2, 3, biass=True), r"Linear: .*'biass'\n.*in_features, out_features.*\n.*mean 'bias'"),
        (lambda: mg.nn.Flatten(start_dim=1), "write start_axis= instead"),
        (lambda: mg.optim.MixedPrecision(None, optimiser=None), "MixedPrecision: .*(.|\\n)*did you mean 'optimizer'"),
        (
            lambda: mg.nn.ReLU(inplace=True),
            r"ReLU: the option 'inplace' is not offered\n.*ReLU\(\)\n.*write x = f\(x\)",
        ),
        (lambda: mg.exp(mg.ones(2), out=mg.ones(2)), r"exp: the option 'out' is not offered\n(.|\n)*x\[...\] = f\(y\)"),
        (lambda: mg.ones(2).sum(where=[True, False]), r"sum: the option 'where' is not offered"),
        (
            lambda: mg.nn.functional.mse_loss(mg.ones(2), mg.ones(2), size_average=True),
            "mse_loss: the option 'size_average'",
        ),
        (
            lambda: mg.nn.Linear(1, 2, True, None, None, 3),
            r"Linear: too many arguments\n.*in_features.*\n.*6 by position",
        ),
        (lambda: mg.optim.Cosine(None, T_max=100), r"Cosine: .*'T_max'\n.*optimizer, total.*\n.*write total="),
        (lambda: mg.optim.SGD([], learning_rate=1), r"SGD has no option 'learning_rate'\n.*lr"),
        (lambda: mg.train.Trainer(None, None, None, None, max_step=2), r"Trainer: .*'max_step'(.|\n)*mean 'max_steps'"),
        (lambda: mg.train.Trainer(max_epochs=2), r"Trainer: .*'max_epochs'\n.*parallel\)\n.*write epochs= instead"),
        (lambda: mg.nn.Linear(10), r"Linear: out_features must be given\n.*\(in_features, out_features.*\n.*got: *10$"),
        (lambda: mg.nn.Conv2d(kernel_size=3), "Conv2d: in_channels and out_channels must be given"),
        (lambda: mg.nn.Conv2d(3, out_channels=8), r"Conv2d: kernel_size must be given(.|\n)*got: *3, out_channels=8$"),
        (lambda: mg.optim.Adam(mg.nn.Linear(1, 1).parameters(), learning_rate=1), "write lr= instead"),
        (lambda: mg.ones(2).std(unbiased=True), "write ddof= instead"),
        (lambda: mg.ones(2).norm(p=1), "write ord= instead"),
        (lambda: mg.vmap(mg.sin, in_dims=1), "vmap: unknown argument 'in_dims'\n(.|\n)*write in_axes= instead"),
    ],
)
def test_a_wrong_argument_of_a_constructor_is_answered_with_those_it_takes(make, told):
    with pytest.raises(TypeError, match=told):
        make()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: mg.nn.Conv2d(3, 8, 3, padding="vaild"), "Conv2d: unknown padding(.|\n)*did you mean 'valid'"),
        (lambda: mg.nn.Conv2d(3, 8, 3, stride=2, padding="same"), "Conv2d: padding='same' needs stride 1"),
        (
            lambda: mg.nn.Sequential([mg.nn.ReLU()]),
            r"only modules can be in it(.|\n)*unpack it: Sequential\(\*layers\)",
        ),
        (lambda: mg.nn.Sequential(mg.nn.Linear(1, 1), mg.relu), r"only modules(.|\n)*take its layer, as nn.ReLU\(\)"),
        (lambda: mg.data.DataLoader(mg.data.Dataset()), "DataLoader: this is no dataset\n.*__getitem__ and __len__"),
    ],
)
def test_options_that_cannot_work_are_refused_when_a_thing_is_made(make, told):
    with pytest.raises(ValueError, match=told):
        make()


def test_no_hint_hides_an_attribute_that_tensors_have():
    from minigrad.engine.methods import Methods
    from minigrad.interop import HINTS

    for name in HINTS:
        assert not hasattr(Methods, name) and not hasattr(mg.ones(2), name), name
        with pytest.raises(AttributeError, match=f"a Tensor has no attribute '{name}'; (minigrad calls it|it is not)"):
            getattr(mg.ones(2), name)
    assert not HINTS & set(dir(mg.ones(2)))


def test_a_constructor_may_take_any_keyword_or_none():
    class Any(mg.nn.Module):
        def __init__(self, size, **rest):
            self.size = size

    class Plain(mg.nn.Module):
        pass

    assert Any(3, other=4).size == 3
    assert isinstance(mg.nn.Identity(54, unused=0.1), mg.nn.Identity)
    with pytest.raises(TypeError, match="Plain: too many arguments"):
        Plain(1)
