"""The text of a failed expectation has the timeline of the recipient."""
import smtplib

import pytest
from deferd_lab import LabError


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
