"""
Builds the package with only the standard library (PEP 517 and 660). The same sources give the same bytes.

`python3 build_backend/cadre_build.py <folder>` writes the wheel and the source archive into a folder; `pip install ./sdk-python` calls the
functions below. In the repository it generates the models, which needs Node.js; a source archive contains them.
"""

from __future__ import annotations

import ast
import base64
import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time
import typing as t
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "cadre"
GENERATED = PACKAGE / "_generated"
GENERATOR = ROOT.parent / "tools" / "gen" / "gen-python.ts"
#: Further files of a source archive.
OTHER_SOURCES = ("LICENSE", "README.md", "pyproject.toml", "build_backend/cadre_build.py")
#: The earliest timestamp that ZIP can store.
EARLIEST = 315_532_800


def project() -> t.Dict[str, t.Any]:
    """`[project]` of pyproject.toml: texts and lists, which TOML writes as Python does. Python 3.9 cannot read TOML."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    section = text.split("[project]\n", 1)[1].split("\n[", 1)[0]
    found = re.findall(r'^([\w-]+) = ("[^"\n]*"|\[[^\]]*\])$', section, re.M)
    return {name: ast.literal_eval(value) for name, value in found}


def version() -> str:
    text = (PACKAGE / "_version.py").read_text("utf-8")
    return str(ast.literal_eval(text.split("=", 1)[1].strip()))


def metadata() -> str:
    about = project()
    return "\n".join(
        [
            "Metadata-Version: 2.4",
            f"Name: {about['name']}",
            f"Version: {version()}",
            f"Summary: {about['description']}",
            f"License-Expression: {about['license']}",
            "License-File: LICENSE",
            f"Requires-Python: {about['requires-python']}",
            *(f"Classifier: {one}" for one in about["classifiers"]),
            "Description-Content-Type: text/markdown",
            "",
            (ROOT / about["readme"]).read_text("utf-8"),
        ]
    )


WHEEL = "Wheel-Version: 1.0\nGenerator: cadre_build\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(
    wheel_directory: str, config_settings: t.Any = None, metadata_directory: t.Optional[str] = None
) -> str:
    generate()
    files = {f"cadre/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes() for path in package_files()}
    return write_wheel(wheel_directory, files)


def build_editable(
    wheel_directory: str, config_settings: t.Any = None, metadata_directory: t.Optional[str] = None
) -> str:
    generate()
    return write_wheel(wheel_directory, {"cadre_sdk.pth": f"{PACKAGE.parent}\n".encode()})


def build_sdist(sdist_directory: str, config_settings: t.Any = None) -> str:
    generate()
    base = f"cadre_sdk-{version()}"
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in package_files()}
    files.update({name: (ROOT / name).read_bytes() for name in OTHER_SOURCES})
    files["PKG-INFO"] = metadata().encode()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), moment(), 0o644
            archive.addfile(entry, io.BytesIO(data))
    target = pathlib.Path(sdist_directory) / f"{base}.tar.gz"
    with open(target, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=moment()) as packed:
        packed.write(content.getvalue())
    return target.name


def write_wheel(wheel_directory: str, files: t.Dict[str, bytes]) -> str:
    base = f"cadre_sdk-{version()}"
    info = f"{base}.dist-info"
    # The record comes last.
    entries = {
        **dict(sorted(files.items())),
        f"{info}/METADATA": metadata().encode(),
        f"{info}/WHEEL": WHEEL.encode(),
        f"{info}/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
    }
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in entries.items())
    entries[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    target = pathlib.Path(wheel_directory) / f"{base}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in entries.items():
            entry = zipfile.ZipInfo(name, time.gmtime(moment())[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, data)
    return target.name


def get_requires_for_build_wheel(config_settings: t.Any = None) -> t.List[str]:
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def package_files() -> t.List[pathlib.Path]:
    found = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted(path for path in found if path.suffix == ".py" or path.name == "py.typed")


def generate() -> None:
    """Generates models and methods from the contract if this is the repository."""
    node = shutil.which("node")
    if GENERATOR.exists() and node:
        command = [node, str(ROOT.parent / "tools" / "run.mjs"), str(GENERATOR)]
        subprocess.run(command, cwd=ROOT.parent, check=True)
    if not (GENERATED / "models.py").exists():
        raise SystemExit("The generated models are missing. Install Node.js, and run `npm ci && npm run gen`.")


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def moment() -> int:
    """Timestamp of every file: `SOURCE_DATE_EPOCH`, else the earliest possible."""
    return max(EARLIEST, int(os.environ.get("SOURCE_DATE_EPOCH") or EARLIEST))


if __name__ == "__main__":
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    print(os.path.join(out, build_wheel(out)))
    print(os.path.join(out, build_sdist(out)))
