"""Writes the wheel of the package (PEP 517, PEP 427). The standard library is enough, so that pip needs no network."""
import base64
import hashlib
import pathlib
import re
import zipfile

ROOT = pathlib.Path(__file__).parent.parent
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def _value(key):
    return re.search(rf'^{key} = "(.*)"$', PROJECT, re.MULTILINE).group(1)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name, version = _value("name").replace("-", "_"), _value("version")
    info = f"{name}-{version}.dist-info"
    files = {str(path.relative_to(ROOT)): path.read_bytes() for path in sorted((ROOT / name).glob("*.py"))}
    metadata = f"Metadata-Version: 2.1\nName: {_value('name')}\nVersion: {version}\nSummary: {_value('description')}\n"
    files[f"{info}/METADATA"] = f"{metadata}License: MIT\nRequires-Python: {_value('requires-python')}\n".encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: wheel_writer\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = f"[pytest11]\ndeferd_lab = {_value('deferd_lab')}\n".encode()
    record = ""
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return wheel
