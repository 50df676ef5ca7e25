"""Texts of failures: an expectation shows the timeline of the recipient, and a call that cannot be made says what to do."""
import smtplib

import pytest
from deferd_lab import Lab, LabError


def test_timeline(lab):
    with smtplib.SMTP(*lab.smtp) as client:
        client.sendmail("app@us.example", ["ann@x.example"], b"Subject: hi\r\n\r\nhello\r\n")
    lab.settle(accepted=1)
    lab.expect("ann@x.example").never.has_bounced(status="5.1.1")
    with pytest.raises(AssertionError, match=r"to have bounced, but its last attempt was delivered[^$]*\+0s accepted from"):
        lab.expect("ann@x.example").has_bounced()
    with pytest.raises(LabError, match=r"did you mean ann@x\.example\?") as refused:
        lab.expect("an@x.example").never.has_bounced()
    assert refused.value.kind == "vacuous"


@pytest.mark.parametrize(
    "call",
    [
        lambda lab: lab.destination("x.example").is_down("3h"),
        lambda lab: lab.destination("x.example").greylists("5m", "4h"),
        lambda lab: lab.expect("ann@x.example").was_delivered(1),
    ],
)
def test_a_value_without_a_name_is_refused(lab, call):
    with pytest.raises(TypeError, match="by position, got .*: give the others by name"):
        call(lab)


def test_values_of_an_expectation_by_position(lab):
    lab.destination("x.example").rejects("ann@x.example", "550 5.1.1 no such user")
    with smtplib.SMTP(*lab.smtp) as client:
        client.sendmail("app@us.example", ["ann@x.example"], b"Subject: hi\r\n\r\nhello\r\n")
    lab.settle(accepted=1)
    lab.expect("ann@x.example").has_bounced("5.1.1", "no such user")


def test_no_lab(tmp_path, monkeypatch):
    """Without deferd in PATH, npx is told to get nothing from a registry."""
    npx = tmp_path / "npx"
    npx.write_text('#!/bin/sh\ntest "$1" = --no && exit 7\n')
    npx.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DEFERD_LAB_URL", raising=False)
    with pytest.raises(RuntimeError, match="npx --no deferd lab .* ended with 7 .*install deferd, or set DEFERD_LAB_URL"):
        Lab()
