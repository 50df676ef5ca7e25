"""deferd lab from Python: a relay in virtual time, with remote servers that fail as a test says (docs/lab.md of deferd)."""
# fmt: off
import atexit
import json
import os
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

__all__ = ["Lab", "World", "LabError"]

# A lab is on this machine: no proxy leads to it.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class LabError(Exception):
    """A refused request. The message is the detail of the lab; `kind` is the last part of its type, such as "not-yet"."""

    def __init__(self, answer):
        with answer:
            problem, status = json.loads(answer.read() or b"{}"), answer.code
        super().__init__(problem.get("detail", f"status {status}"))
        self.status = status
        self.kind = problem.get("type", "").rsplit("/", 1)[-1]
        self.errors = problem.get("errors", [])


class Answer(dict):
    """A JSON object whose members are attributes, too."""
    __getattr__ = dict.__getitem__


def _quoted(text): return urllib.parse.quote(text, safe="@")


def _given(**members):
    """The members that are not None. `from_` and `for_` are written without their last character."""
    return {name.rstrip("_"): value for name, value in members.items() if value is not None}


def _members(call, names, values, named):
    """The members of the body of a call, whose `values` by position have `names`. Raises TypeError when a value has no name."""
    if len(values) > len(names):
        known = f"only {' and '.join(names)}" if names else "nothing"
        raise TypeError(f"{call} takes {known} by position, got {values!r}: give the others by name, such as reply=\"550 5.1.1 no\"")
    return {**dict(zip(names, values)), **_given(**named)}


class Lab:
    """A lab: that of DEFERD_LAB_URL, or else a process of its own, which ends with this one."""

    def __init__(self, url=None):
        self._process, self._token = None, os.environ.get("DEFERD_LAB_TOKEN")
        self.url = url or os.environ.get("DEFERD_LAB_URL") or self._start()

    def _start(self):
        remedy = "install deferd, or set DEFERD_LAB_URL to the URL of a lab"
        # --no: npx runs the deferd of the project, and never one that it would get from a registry.
        found = [shutil.which("deferd")] if shutil.which("deferd") else [shutil.which("npx"), "--no", "deferd"]
        if found[0] is None:
            raise RuntimeError(f"no lab can be started (neither deferd nor npx is in PATH): {remedy}")
        command = [*found, "lab", "--http", "0", "--parent"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(self.stop)
        line = self._process.stdout.readline()
        if not line:
            ended = f"{' '.join(command)} ended with {self._process.wait()} before its port was open"
            raise RuntimeError(f"no lab can be started ({ended}): {remedy}")
        return json.loads(line)["http"]

    def stop(self):
        """Ends the process of the lab, if it is one of its own."""
        if self._process is not None and self._process.poll() is None:
            self._process.stdin.close()
            self._process.wait()

    def call(self, method, path, body=None, content_type="application/json"):
        """Sends a request below /lab/v1, and returns the value of the answer. Raises LabError."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"content-type": content_type}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(f"{self.url}/lab/v1{path}", data, headers, method=method)
        try:
            with _OPENER.open(request) as response:
                content, is_json = response.read(), response.headers.get_content_type() == "application/json"
        except urllib.error.HTTPError as error:
            raise LabError(error) from None
        return json.loads(content, object_hook=Answer) if is_json else content

    def world(self, **options):
        """Creates a world: `seed`, `config`, `script`, `zone`, `store`, `speed`, `name`, `tls`, `users`, `relay`, `remote_ports`."""
        return World(self, self.call("POST", "/worlds", options))


class World:
    """A relay with a clock of its own. Times are "5m", "2d" or seconds. Use it in a `with` statement, or call `close`.
    `advance` and `settle` first wait in real time, for at most `within`, for `accepted` messages, `requests={"app": 2}` of webhooks,
    and `sessions="idle"`. `settle` then advances until the queue is empty, for `at_most` a time."""

    def __init__(self, lab, created):
        self.lab, self.id = lab, created["id"]
        self.smtp = created["smtp"] and (created["smtp"]["host"], created["smtp"]["port"])  # for smtplib.SMTP(*world.smtp); None without a relay
        self.remote_ports = {one["mx"]: (one["host"], one["port"]) for one in created["remote_ports"]}

    def __enter__(self): return self
    def __exit__(self, *_): self.close()
    # Sends a request below the path of the world.
    def call(self, method, path, body=None, **options): return self.lab.call(method, f"/worlds/{self.id}{path}", body, **options)
    def close(self): self.call("DELETE", "")
    def clock(self): return self.call("GET", "/clock")
    def advance(self, by, **conditions): return self._move("advance", by=by, **conditions)
    def settle(self, accepted=None, **conditions): return self._move("settle", accepted, **conditions)
    def crash(self, down_for=None): return self.call("POST", "/crash", _given(down_for=down_for))
    def restart(self): return self.call("POST", "/restart", {})
    def operate(self, operation, ids=None): return self.call("POST", "/operations", _given(operation=operation, ids=ids))
    def history(self): return self.call("GET", "/history")
    def mails(self, address): return self.call("GET", f"/mailboxes/{_quoted(address)}")["mails"]
    def recipient(self, address): return self.call("GET", f"/recipients/{_quoted(address)}")
    def quotas(self, key): return self.call("GET", f"/quotas/{_quoted(key)}")["quotas"]
    def expect(self, address): return Expectation(self, address)
    # A remote domain, whose methods are the verbs of docs/lab.md: `world.destination("x.example").greylists("5m")`.
    def destination(self, domain): return Destination(self, domain)
    # Adds a rule with the keys of docs/faults.md.
    def rule(self, **rule): return self.call("POST", "/rules", _given(**rule))
    # Adds a webhook, with `types`, and `url` of an application that gets the requests.
    def webhook(self, name, **options): return Webhook(self, name, self.call("POST", "/webhooks", {"name": name, **options})["secret"])

    def wait(self, address, headers=None, **conditions):
        """Waits for a mail: `subject`, `from_`, `contains`, `notice`, `after`, `count`, `link`, `within`, `advance`, `headers`."""
        query = {**_given(**conditions), **{f"header.{name}": value for name, value in (headers or {}).items()}}
        return self.call("GET", f"/mailboxes/{_quoted(address)}/wait?{urllib.parse.urlencode(query)}")

    def _move(self, how, accepted=None, sessions=None, requests=None, **members):
        after = _given(accepted=accepted, sessions=sessions, requests=requests)
        return self.call("POST", f"/clock/{how}", _given(after=after, **members))


class Webhook:
    def __init__(self, world, name, secret):
        self._world, self._path, self.secret = world, f"/webhooks/{_quoted(name)}", secret

    def requests(self): return self._world.call("GET", f"{self._path}/requests")["requests"]
    def is_down_for(self, time): return self._script(is_down_for=time)
    def replies(self, status, first=None, for_=None): return self._script(replies=status, first=first, for_=for_)
    def recovers(self): return self._script(recovers=True)
    def replay(self, kind="waiting"): return self._world.call("POST", f"{self._path}/replay", {"kind": kind})["count"]
    def _script(self, **members): self._world.call("POST", f"{self._path}/script", _given(**members))


class Destination:
    # Names of the arguments that a call may give by position.
    _ARGUMENTS = {
        "greylists": "delay", "is_down_for": "time", "is_down_between": "from until", "rejects": "recipient reply", "is_slow": "time",
        "defers": "recipient reply", "fails_first": "times reply", "mailbox_is_full": "recipient", "throttles": "rate",
        "allows_connections": "count", "drops_after_dot": "times", "fails_in_dns": "how", "has_exchangers": "records",
    }

    def __init__(self, world, domain):
        self._world, self._path = world, f"/destinations/{_quoted(domain)}"

    def __getattr__(self, verb):
        def call(*arguments, **options):
            self._world.call("POST", f"{self._path}/{verb}", _members(verb, self._ARGUMENTS.get(verb, "").split(), arguments, options))
            return self
        return call


class Expectation:
    """Each method is a matcher: `world.expect("ann@x.example").was_delivered()`. It raises an AssertionError with the timeline."""

    _ARGUMENTS = {"has_bounced": "status reply", "was_deferred": "times", "was_suppressed": "times", "has_started_within": "time"}

    def __init__(self, world, address, is_not=False):
        self._world, self._address, self._is_not = world, address, is_not

    #: The negation of the next matcher.
    never = property(lambda self: Expectation(self._world, self._address, not self._is_not))

    def __getattr__(self, matcher):
        def check(*values, **named):
            __tracebackhide__ = True
            listed = matcher in ("was_attempted_at", "caused_notices")
            args = list(values) if listed else _members(matcher, self._ARGUMENTS.get(matcher, "").split(), values, named)
            body = {"recipient": self._address, "matcher": matcher, "args": args, "not": self._is_not}
            finding = self._world.call("POST", "/asserts", body)
            if not finding["holds"]:
                raise AssertionError(finding["message"])

        return check
