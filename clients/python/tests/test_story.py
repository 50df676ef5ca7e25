"""Five days of mail in one file: greylisting, a crash, an outage, and a code that is waited for."""
import smtplib

import pytest

MAIL = b"Subject: Your code\r\n\r\nYour code is 4711.\r\n"


def send(lab, to):
    with smtplib.SMTP(*lab.smtp) as client:
        client.sendmail("app@us.example", [to], MAIL)


def test_greylisted(lab):
    lab.destination("slow.example").greylists("5m")
    send(lab, "ann@slow.example")
    lab.settle(accepted=1)
    lab.expect("ann@slow.example").was_attempted_at(0, 300)
    assert lab.wait("ann@slow.example", subject="*code*").code == "4711"


@pytest.mark.lab(config={"maximal_queue_lifetime": "5d"})
def test_expires_after_five_days(lab):
    lab.destination("gone.example").is_down()
    send(lab, "eve@gone.example")
    lab.settle(accepted=1)
    lab.expect("eve@gone.example").has_expired()
    assert lab.wait("app@us.example", notice="failed").notice.recipients[0].recipient == "eve@gone.example"


def test_crash(lab):
    lab.destination("x.example").is_down_for("1h")
    send(lab, "ann@x.example")
    lab.crash(down_for="10m")
    lab.settle()
    lab.expect("ann@x.example").was_delivered_once()
