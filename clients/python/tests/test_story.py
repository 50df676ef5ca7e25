"""Five days of mail: greylisting, a crash, an outage, a webhook of the application, and a code that is waited for."""
import http.server
import json
import smtplib
import threading

import pytest


class Application(http.server.BaseHTTPRequestHandler):
    expired = []

    def do_POST(self):
        self.expired.append(json.loads(self.rfile.read(int(self.headers["content-length"])))["data"]["recipient"])
        self.send_response(204)
        self.end_headers()


@pytest.fixture
def url():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Application) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.lab(seed=7, config={"maximal_queue_lifetime": "5d"})
def test_five_days(lab, url):
    lab.webhook("app", types=["recipient.expired"], url=url)
    lab.destination("slow.example").greylists("5m")
    lab.destination("gone.example").is_down()
    with smtplib.SMTP(*lab.smtp) as client:
        for to in ("ann@slow.example", "eve@gone.example"):
            client.sendmail("app@us.example", [to], b"Subject: Your code\r\n\r\nYour code is 4711.\r\n")
    lab.advance("1m", accepted=2)
    lab.crash(down_for="2m")
    lab.settle()
    lab.expect("ann@slow.example").was_delivered_once()
    assert lab.wait("ann@slow.example", subject="*code*").code == "4711"
    assert Application.expired == ["eve@gone.example"]
