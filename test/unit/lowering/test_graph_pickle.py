"""Pickles that any process can read."""

import pickle
import sys
import types

import pytest
import torch

from mlir_npu.lowering.graph_pickle import dumps

FORMATS = (torch.contiguous_format, torch.channels_last, torch.preserve_format)


@pytest.fixture
def script(monkeypatch):
    """A module of the user's, which no other process can import, that was imported before torch."""
    module = types.ModuleType("script_of_the_user")
    module.torch = torch
    monkeypatch.setattr(sys, "modules", {module.__name__: module, **sys.modules})
    with pytest.raises(pickle.PicklingError, match=module.__name__):
        pickle.dumps(torch.contiguous_format)


def test_values_name_no_module_of_the_user(script):
    value = {"formats": FORMATS, "dtype": torch.bfloat16, "layout": torch.strided}
    assert pickle.loads(dumps(value)) == value
