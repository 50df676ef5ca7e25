"""The cases that the clients of all languages run (clients/contract.json)."""
import json
import pathlib
import smtplib

import pytest
from deferd_lab import LabError

CASES = json.loads((pathlib.Path(__file__).parents[2] / "contract.json").read_text(encoding="utf-8"))["cases"]


def matches(expected, found):
    """True when `found` has all that `expected` has; objects may have more members."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(name in found and matches(value, found[name]) for name, value in expected.items())
    if isinstance(expected, list):
        return isinstance(found, list) and len(expected) == len(found) and all(map(matches, expected, found))
    return expected == found


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_contract(deferd_lab, case):
    with deferd_lab.world(**case.get("world", {})) as world:
        for step in case["steps"]:
            if "send" in step:
                mail = step["send"]
                with smtplib.SMTP(*world.smtp) as client:
                    client.sendmail(mail["from"], mail["to"], mail["content"].encode())
                continue
            method, path = step["call"].split(" ", 1)
            try:
                status, found = None, world.call(method, path, step.get("body"))
            except LabError as error:
                status, found = error.status, {"kind": error.kind, "detail": str(error), "errors": error.errors}
            assert status == step.get("status"), found
            assert matches(step.get("match", {}), found if found != b"" else {}), found
