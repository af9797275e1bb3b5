"""The corpora beside the models: the examples in their docstrings hold, and the framework does not bring them along."""

import doctest
import importlib
import pkgutil

import minigrad_models.corpora as corpora
import pytest

import minigrad as mg

MODULES = [corpora.__name__, *(f"{corpora.__name__}.{found.name}" for found in pkgutil.iter_modules(corpora.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_docstrings_have_examples():
    assert sum(doctest.testmod(importlib.import_module(name)).attempted for name in MODULES) > 5


def test_the_framework_has_no_corpora():
    assert not {"phrasebook", "grammar_pairs", "stories", "story_text"} & set(dir(mg.data))
