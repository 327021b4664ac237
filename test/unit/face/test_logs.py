"""MLIR_NPU_LOGS and warnings that come once."""

import logging
import os
import subprocess
import sys

import pytest

from mlir_npu.errors import OptionsError
from mlir_npu.logs import parse, warn_once


def test_levels():
    assert parse("") == {}
    assert parse("info") == {"mlir_npu": logging.INFO}
    assert parse("partition,+graph") == {
        "mlir_npu.partition": logging.INFO,
        "mlir_npu.graph": logging.DEBUG,
    }
    assert parse("+mlir_npu.graph") == {"mlir_npu.graph": logging.DEBUG}


def test_one_warning_per_cause(caplog):
    logger = logging.getLogger("mlir_npu.test_logs")
    with caplog.at_level(logging.INFO, logger="mlir_npu"):
        for region in ("npu_0", "npu_1"):
            warn_once(logger, "a cause of this test only", f"{region} runs on the host")
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "npu_1" in caplog.text


def test_an_unknown_topic_names_the_nearest():
    with pytest.raises(OptionsError, match="no topic 'partitoin'; did you mean 'partition'"):
        parse("partitoin")
    with pytest.raises(OptionsError, match="valid are autotune, fallback, graph"):
        parse("xyz")


def test_the_variable_shows_parts_and_source_on_stderr():
    code = (
        "import torch\n"
        "f = torch.compile(lambda x: torch.softmax(x, 1) + 1, backend='mlir_npu')\n"
        "f(torch.ones(3, 3))"
    )
    environment = os.environ | {"MLIR_NPU_LOGS": "+graph"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert "[mlir_npu.graph] INFO: inference: host_0 on " in done.stderr
    assert "def inference(args):" in done.stderr
    assert "[mlir_npu.partition]" not in done.stderr.replace("WARNING", "")


def test_compiling_leaves_the_root_logger_alone():
    code = """
import logging, torch
with torch.no_grad():
    torch.compile(torch.nn.Conv2d(3, 8, 3).eval(), backend="mlir_npu")(torch.randn(1, 3, 16, 16))
print(logging.root.handlers)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert result.stdout.strip() == "[]"
