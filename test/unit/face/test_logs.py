"""MLIR_NPU_LOGS and warnings that come once."""

import logging

from mlir_npu.logs import parse, warn_once


def test_levels():
    assert parse("") == {}
    assert parse("info") == {"mlir_npu": logging.INFO}
    assert parse("partition,+region") == {
        "mlir_npu.partition": logging.INFO,
        "mlir_npu.region": logging.DEBUG,
    }
    assert parse("+mlir_npu.graph") == {"mlir_npu.graph": logging.DEBUG}


def test_one_warning_per_cause(caplog):
    logger = logging.getLogger("mlir_npu.test_logs")
    with caplog.at_level(logging.INFO, logger="mlir_npu"):
        for region in ("npu_0", "npu_1"):
            warn_once(logger, "a cause of this test only", f"{region} runs on the host")
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "npu_1" in caplog.text
