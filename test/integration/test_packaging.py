"""The wheel: what it holds, and that it works where the checkout is out of reach."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "mlir_npu",
    "benchmarks",
    "lowering",
    "dialect",
    "export",
    "passes",
    "runtime",
    "scripts",
    "simulator",
)


def is_packaged(source: Path) -> bool:
    data = (".json", ".c", ".h") if source.is_relative_to(ROOT / "export") else ()
    return source.suffix in (".py", ".toml", *data)


def installed_name(source: Path) -> str:
    """Where a file of the checkout lies in the wheel."""
    parts = source.relative_to(ROOT).parts
    return "/".join(parts if parts[0] == "mlir_npu" else ("mlir_npu", *parts))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the tracked and new files, so that no old build is in it."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (copy / name).write_bytes((ROOT / name).read_bytes())
    for folder in FOLDERS:
        for source in (ROOT / folder).rglob("*"):
            if is_packaged(source):
                target = copy / source.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())
    build = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(copy)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *build], check=True, cwd=out)
    (built,) = out.glob("*.whl")
    return built


def test_wheel_holds_mlir_npu_and_metadata_only(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    code = {name for name in names if ".dist-info/" not in name}
    sources = {
        installed_name(source)
        for folder in FOLDERS
        for source in (ROOT / folder).rglob("*")
        if is_packaged(source)
    }
    assert code == sources
    assert {name.split("/")[0] for name in names} == {
        "mlir_npu",
        wheel.stem.split("-py3")[0] + ".dist-info",
    }


def test_wheel_works_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """In an environment that sees this one's torch and torch-mlir, but not the checkout."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    (site,) = environment.glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    here = [p for p in sys.path if p.endswith("site-packages")]
    # After the wheel's own folder, as plain directories: their .pth files, and with them the
    # editable install of the checkout, are not read.
    (site / "dependencies.pth").write_text("\n".join(here) + "\n")
    program = (
        "import torch, mlir_npu\n"
        "assert 'mlir_npu' in torch._dynamo.list_backends(), torch._dynamo.list_backends()\n"
        "model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())\n"
        "images = torch.randn(1, 3, 8, 8)\n"
        "compiled = torch.compile(model, backend='mlir_npu', options={'strict': True})\n"
        "with torch.no_grad():\n"
        "    torch.testing.assert_close(compiled(images), model(images))\n"
        "print(mlir_npu.__file__)\n"
    )
    run = subprocess.run(
        [str(python), "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert Path(run.stdout.strip()).is_relative_to(site)


def test_command_finds_its_way_from_any_directory(tmp_path: Path) -> None:
    """npu-opt of this environment, run from an empty directory."""
    command = Path(sys.executable).with_name("npu-opt")
    run = subprocess.run(
        [str(command), "--list-passes"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "choose-tiles" in run.stdout
