"""Module, the base of models and layers: it owns parameters and submodules, and can be saved, frozen, moved and printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ..changes import changes
from ..engine.backend import on_device_of
from ..engine.graph import leaf
from ..engine.modes import local
from ..engine.tensor import Tensor, wrap
from ..engine.writes import writes
from ..errors import ArgumentError, CallError, MinigradError, missing_attribute
from ..hooks import HookHandle
from ..kernels import Packed
from ..ops.creation import zeros_like
from ..signature import Constructed
from .hooks import OnBackward, WithKwargs, forward_with_hooks
from .state_dict import IncompatibleKeys, StateError, fitted, moved, moved_packed
from .summary import summary

__all__ = ["Module", "Parameter", "StateError"]


class Parameter(Tensor):
    """A Tensor that a Module owns and an optimiser changes; it requires a gradient unless frozen."""

    __slots__ = ()

    def __new__(cls, data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = True) -> Parameter:
        made = super().__new__(cls, data, dtype, device, requires_grad)
        assert isinstance(made, Parameter)
        return made


class Module(Constructed):
    """The base of every model and layer: assign parameters and modules as attributes, and write `forward`.

    >>> import minigrad as mg
    >>> class Line(mg.nn.Module):
    ...     def __init__(self):
    ...         self.slope = mg.nn.Parameter(2.0)
    ...     def forward(self, x):
    ...         return self.slope * x
    >>> Line()(3.0).item()
    6.0
    """

    training: bool
    _name: str
    _buffers: dict[str, bool]
    _pre_hooks: dict[int, Any]  # functions, WithKwargs
    _hooks: dict[int, Any]  # functions, WithKwargs, OnBackward
    couples_batch = False  # whether the result for one example depends on the others, as in BatchNorm

    def __new__(cls, *args: Any, **kwargs: Any) -> Module:
        self: Module = super().__new__(cls, *args, **kwargs)
        vars(self).update(training=True, _name=cls.__name__, _buffers={}, _pre_hooks={}, _hooks={})
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every module writes its own."""
        raise CallError(
            f"{type(self).__name__} has no forward method", fix="write `def forward(self, x): …` in the class"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mode = local.mode
        outer, tracers = mode.scope, mode.tracers
        mode.scope = scope = f"{outer}.{self._name}" if outer else self._name
        try:
            for tracer in tracers:
                tracer.entered(self._name, type(self).__name__)
            if self._pre_hooks or self._hooks:  # not has_hooks(): the smallest layers would feel the call
                return forward_with_hooks(self, args, kwargs)
            return self.forward(*args, **kwargs)
        except MinigradError as error:
            _locate(error, scope)
            raise
        finally:
            mode.scope = outer
            for tracer in tracers:
                tracer.left()

    def has_hooks(self) -> bool:
        """Whether somebody listens to, or changes, what goes in or comes out."""
        return bool(self._pre_hooks or self._hooks)

    def __setattr__(self, name: str, value: Any) -> None:
        where = f"{type(self).__name__}.{name}"
        if isinstance(value, (Module, Parameter, Packed)) and hasattr(Module, name):
            raise ArgumentError(f"{where}: every module has something of this name", fix="choose another name")
        if isinstance(value, Module):
            if any(module is self for module in value.modules()):
                raise ArgumentError(
                    f"{where}: a module cannot contain itself", fix="keep a part from knowing its whole"
                )
            if not any(part is value for part in vars(self).values()):  # one with two names here keeps the first
                value._rename(name)
        elif isinstance(value, (Parameter, Packed)):
            self._buffers.pop(name, None)
        elif isinstance(value, Tensor) and isinstance(vars(self).get(name), Parameter):
            raise ArgumentError(
                f"{where}: a Tensor in the place of a parameter would not be trained",
                "a Parameter",
                "a Tensor",
                f"assign nn.Parameter(…), or write into it: with mg.no_grad(): module.{name}[...] = …",
            )
        else:
            _refuse_hidden(where, value)
        object.__setattr__(self, name, value)
        changes.note()

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        changes.note()

    def _rename(self, name: str) -> None:
        vars(self)["_name"] = name

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Keep a tensor that is not trained but moves, and unless `persistent=False` is saved, with the module."""
        if not isinstance(name, str) or not name.isidentifier() or name not in self._buffers and hasattr(self, name):
            raise ArgumentError(
                f"{type(self).__name__}: a buffer cannot have this name", "a name that is still free", repr(name)
            )
        if tensor is not None and (not isinstance(tensor, Tensor) or isinstance(tensor, Parameter)):
            raise ArgumentError(
                f"{type(self).__name__}.{name}: this cannot be a buffer", "a Tensor or None", type(tensor).__name__
            )
        self._buffers[name] = persistent
        setattr(self, name, tensor)

    def register_forward_hook(self, hook: Callable[..., Any], *, with_kwargs: bool = False) -> HookHandle:
        """Call `hook(module, args, output)` after each forward; what it returns, unless None, replaces the output.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`.
        """
        return _add_hook(self._hooks, WithKwargs(hook) if with_kwargs else hook)

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, with_kwargs: bool = False) -> HookHandle:
        """Call `hook(module, args)` before each forward; what it returns, unless None, replaces the arguments.

        With `with_kwargs` it is `hook(module, args, kwargs)`, and it returns None or both.
        """
        return _add_hook(self._pre_hooks, WithKwargs(hook) if with_kwargs else hook)

    def register_full_backward_hook(self, hook: Callable[[Module, Any, Any], Any]) -> HookHandle:
        """Call `hook(module, grad_input, grad_output)` after each backward of the module.

        Both are tuples: for each argument given by position, and for each Tensor of the output, its gradient, or None
        where there is none. What the hook returns, unless None, replaces `grad_input`.
        """
        return _add_hook(self._hooks, OnBackward(hook, before=False))

    def register_full_backward_pre_hook(self, hook: Callable[[Module, Any], Any]) -> HookHandle:
        """Call `hook(module, grad_output)` before each backward of the module; what it returns, unless None, replaces it."""
        return _add_hook(self._hooks, OnBackward(hook, before=True))

    def _parts(self) -> Iterator[tuple[str, Module | Tensor | Packed]]:
        """The attributes that are modules, tensors or packed weights, by name.

        It also finds modules that were added to a plain list after that was assigned.
        """
        for name, value in vars(self).items():
            if isinstance(value, _PARTS):
                yield name, value
            elif name not in _INTERNAL:
                _refuse_hidden(f"{type(self).__name__}.{name}", value)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are attributes of this one, by name."""
        yield from ((name, value) for name, value in self._parts() if isinstance(value, Module))

    def children(self) -> Iterator[Module]:
        """The modules that are attributes of this one."""
        yield from (child for _, child in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module (under "") and all inside it, by path; a module reached by two paths comes once."""
        seen: set[int] = set()
        stack = [(prefix, self)]
        while stack:
            path, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield path, module
            inner = [(f"{path}.{name}" if path else name, child) for name, child in module.named_children()]
            stack.extend(reversed(inner))

    def modules(self) -> Iterator[Module]:
        """This module and all inside it."""
        yield from (module for _, module in self.named_modules())

    def _named(self, kind: Callable[[Module, str, Any], bool], every_path: bool) -> Iterator[tuple[str, Any]]:
        """The tensors, or packed weights, of one kind by path; a shared one comes once, or under every path it has."""
        seen: set[int] = set()
        stack: list[tuple[str, Module]] = [("", self)]
        while stack:
            path, module = stack.pop()
            inner = []
            for name, value in module._parts():
                full = f"{path}.{name}" if path else name
                if isinstance(value, Module):
                    inner.append((full, value))
                elif kind(module, name, value) and (every_path or id(value) not in seen):
                    seen.add(id(value))
                    yield full, value
            stack.extend(reversed(inner))

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module and of all inside it, by path; a tied one comes once, under its first path."""
        yield from self._named(_is_parameter, every_path=False)

    def parameters(self) -> Iterator[Parameter]:
        """The parameters of this module and of all inside it."""
        yield from (parameter for _, parameter in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and of all inside it, by path."""
        yield from self._named(_is_buffer, every_path=False)

    def buffers(self) -> Iterator[Tensor]:
        """The buffers of this module and of all inside it."""
        yield from (buffer for _, buffer in self.named_buffers())

    def named_packed(self) -> Iterator[tuple[str, Packed]]:
        """The packed weights of this module and of all inside it, by path; a tied one comes once, under its first path."""
        yield from self._named(_is_packed, every_path=False)

    def train(self, mode: bool = True) -> Module:
        """Put this module and all inside it into training (dropout on, batch statistics learned) or out of it."""
        for module in self.modules():
            vars(module)["training"] = mode
        changes.note()
        return self

    def eval(self) -> Module:
        """The same as `train(False)`."""
        return self.train(False)

    def requires_grad_(self, value: bool = True) -> Module:
        """Whether the parameters of this module and of all inside it are trained."""
        for parameter in self.parameters():
            parameter.requires_grad_(value)
        return self

    def freeze(self) -> Module:
        """Stop training these parameters, as in fine-tuning; the same as `requires_grad_(False)`."""
        return self.requires_grad_(False)

    def unfreeze(self) -> Module:
        """Train these parameters again."""
        return self.requires_grad_(True)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or, without `set_to_none`, set those that there are to zeros."""
        for parameter in self.parameters():
            parameter.grad = None if set_to_none or parameter.grad is None else zeros_like(parameter)

    def apply(self, function: Callable[[Module], Any]) -> Module:
        """Call `function(module)` for this module and all inside it."""
        for module in self.modules():
            function(module)
        return self

    def to(self, target: Any = None, *, dtype: Any = None, device: str | None = None) -> Module:
        """Move all floating parameters and buffers to a dtype, and all of them to a device; the tensors stay the same objects."""
        tensors = [*self.parameters(), *self.buffers()]
        results = [moved(tensor, target, dtype, device) for tensor in tensors]  # all of them before any is changed
        packed = {id(old): moved_packed(old, target, dtype, device) for _, old in self.named_packed()}
        for tensor, (data, grad) in zip(tensors, results):
            if data is not tensor.data:
                old, tensor.data = tensor.node, data
                if old is not None:
                    tensor.node = leaf(tensor.data)
                    tensor.node.grad, tensor.node.hooks = grad, old.hooks
        self._replace(packed)
        return self

    def _replace(self, parts: Mapping[int, Packed]) -> None:
        """Put packed weights into the places of what has these ids."""
        for module in self.modules() if parts else ():
            for name, value in [*module._parts()]:
                if id(value) in parts and parts[id(value)] is not value:
                    setattr(module, name, parts[id(value)])

    def state_dict(self) -> dict[str, Any]:
        """All parameters and persistent buffers by path, sharing memory with the module; a tied one under every path.

        A packed weight is there as the `Packed` that it is.
        """
        own = self._named(_is_state, every_path=True)
        return {name: value if isinstance(value, Packed) else wrap(value.data) for name, value in own}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Copy the values of a state dict into this module; if anything does not fit, nothing is changed.

        Without `strict`, names that only one side has are passed over, and returned; shapes must fit all the same. A packed
        weight is not copied, but takes the place of the parameter.
        """
        own = dict(self._named(_is_state, every_path=True))
        pairs, packed, passed_over = fitted(type(self).__name__, own, state, strict)
        self._replace(packed)
        for tensor, values in pairs:
            with on_device_of(tensor.data):
                tensor.data[...] = values
            writes.mark(tensor.data)
        return passed_over

    def compiled_state(self) -> tuple[list[Tensor], Any]:
        """Its tensors, and what a compiled function that calls it depends on: its parts, their modes and settings."""
        packed = [weight.tensor for _, weight in self.named_packed()]
        tensors: list[Tensor] = [*self.parameters(), *self.buffers(), *packed]
        settings = [
            (path, type(module), tuple([(k, _comparable(v)) for k, v in _settings(module)]))
            for path, module in self.named_modules()
        ]
        hooks = [(*m._pre_hooks.values(), *m._hooks.values()) for m in self.modules() if m.has_hooks()]
        kinds = tuple([(id(t), id(t.data), t.shape, t.dtype, id(t.node)) for t in tensors])
        return tensors, (tuple(settings), kinds, tuple(hooks))

    def is_settled(self) -> bool:
        """Whether all that a compiled function depends on can only change by an assignment, which is noted in `changes`."""
        return not any(isinstance(v, (list, dict, set)) for module in self.modules() for _, v in _settings(module))

    def compiled_classes(self) -> list[type]:
        """The classes of its parts: their methods may refer to anything."""
        return [*dict.fromkeys(map(type, self.modules()))]

    def summary(self, *inputs: Any) -> str:
        """A table of all modules with their parameter counts and, given example inputs, the shapes of their outputs."""
        return summary(self, *inputs)

    if not TYPE_CHECKING:  # a type checker should know what is not there

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(self, name, "modules")

    def extra_repr(self) -> str:
        """What `repr` shows between the brackets; layers give their sizes."""
        return ""

    def __repr__(self) -> str:
        children = [f"({name}): {child!r}".replace("\n", "\n  ") for name, child in self.named_children()]
        inner = "\n  ".join(["", *children]) + "\n" if children else ""
        return f"{type(self).__name__}({self.extra_repr()}{inner})"


_INTERNAL = frozenset(("_buffers", "_pre_hooks", "_hooks"))
_PARTS = (Module, Tensor, Packed)
_LOOKED_AT = 64  # so many items of a list are looked at: it may hold a whole vocabulary


def _settings(module: Module) -> Iterator[tuple[str, Any]]:
    """The attributes that are neither tensors nor modules."""
    own = vars(module).items()
    return ((k, v) for k, v in own if k not in _INTERNAL and not isinstance(v, _PARTS))


def _comparable(value: Any) -> Any:
    """A setting as something that can be compared and hashed."""
    if isinstance(value, (tuple, list, set)):
        return type(value), tuple([_comparable(part) for part in value])
    if isinstance(value, dict):
        return dict, tuple([(k, _comparable(part)) for k, part in value.items()])
    return (type(value), value) if isinstance(value, (bool, int, float, str, FunctionType)) else id(value)


def _refuse_hidden(where: str, value: Any) -> None:
    """Modules and parameters in a plain list, tuple, set or dict are neither trained nor saved: a mistake."""
    if isinstance(value, (list, tuple, set, dict)) and any(
        isinstance(item, (Module, Parameter, Packed))
        or isinstance(item, (list, tuple))
        and any(isinstance(inner, (Module, Parameter, Packed)) for inner in islice(item, _LOOKED_AT))
        for item in islice(value.values() if isinstance(value, dict) else value, _LOOKED_AT)
    ):
        raise ArgumentError(
            f"{where}: modules and parameters in a plain {type(value).__name__} would be overlooked",
            fix="wrap them in nn.ModuleList([...]), or make each an attribute",
        )


def _add_hook(hooks: dict[int, Any], hook: Any) -> HookHandle:
    handle = HookHandle(hooks)
    hooks[handle.key] = hook
    changes.note()
    return handle


def _locate(error: MinigradError, scope: str) -> None:
    """Put the module's path in front of an error, unless the op, or a module inside, has done so."""
    text = str(error)
    function, colon, rest = text.partition(": ")
    if colon and function.replace("_", "") == scope.rpartition(".")[2].lower():
        text = rest  # of `Linear: linear: …` the first name is enough
    if not text.startswith((f"{scope}:", f"{scope}.", f"{scope} ")):
        error.args = (f"{scope}: {text}",)


def _is_parameter(module: Module, name: str, value: Any) -> bool:
    return isinstance(value, Parameter)


def _is_buffer(module: Module, name: str, value: Any) -> bool:
    return name in module._buffers


def _is_packed(module: Module, name: str, value: Any) -> bool:
    return isinstance(value, Packed)


def _is_state(module: Module, name: str, value: Any) -> bool:
    return isinstance(value, (Parameter, Packed)) or bool(module._buffers.get(name))
