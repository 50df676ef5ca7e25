// Package lab is deferd lab from Go: a relay in virtual time, with remote servers that fail as a test says (docs/lab.md of deferd).
package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Object is a JSON object: a body of a request, or an answer.
type Object = map[string]any

// Error is a refused request. Kind is the last part of its type, such as "not-yet".
type Error struct {
	Status int
	Kind   string
	Detail string           `json:"detail"`
	Type   string           `json:"type"`
	Errors []map[string]any `json:"errors"`
}

func (e *Error) Error() string { return e.Detail }

var (
	starting sync.Once
	base     string
	startErr error
	// Keeps the standard input of the lab open, which ends with this process.
	_stdin io.WriteCloser
)

// baseURL is the lab of DEFERD_LAB_URL, or else one that ends with this process.
func baseURL() (string, error) {
	starting.Do(func() {
		if base = os.Getenv("DEFERD_LAB_URL"); base != "" {
			return
		}
		command := []string{"deferd"}
		if _, err := exec.LookPath("deferd"); err != nil {
			command = []string{"npx", "deferd"}
		}
		process := exec.Command(command[0], append(command[1:], "lab", "--http", "0", "--parent")...)
		process.Stderr = os.Stderr
		_stdin, _ = process.StdinPipe()
		out, _ := process.StdoutPipe()
		if startErr = process.Start(); startErr != nil {
			startErr = fmt.Errorf("no lab can be started (%w): install deferd, or set DEFERD_LAB_URL to the URL of a lab", startErr)
			return
		}
		var first struct{ HTTP string }
		line, _ := bufio.NewReader(out).ReadBytes('\n')
		startErr = json.Unmarshal(line, &first)
		base = first.HTTP
	})
	return base, startErr
}

// A lab is on this machine: no proxy leads to it.
var client = &http.Client{Transport: &http.Transport{}}

// Call sends a request below /lab/v1, and stores the answer in found unless it is nil. Returns *Error for a refusal.
func Call(method, path string, body, found any) error {
	url, err := baseURL()
	if err != nil {
		return err
	}
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, url+"/lab/v1"+path, content)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if token := os.Getenv("DEFERD_LAB_TOKEN"); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		refused := &Error{Status: answer.StatusCode, Detail: answer.Status}
		_ = json.NewDecoder(answer.Body).Decode(refused)
		refused.Kind = refused.Type[strings.LastIndex(refused.Type, "/")+1:]
		return refused
	}
	if found == nil || answer.StatusCode == http.StatusNoContent {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(found)
}

// Option is a member of a new world, or of a call.
type Option func(Object)

func Seed(seed int) Option         { return func(o Object) { o["seed"] = seed } }
func Config(config Object) Option  { return func(o Object) { o["config"] = config } }
func Script(script string) Option  { return func(o Object) { o["script"] = script } }
func Accepted(count int) Option    { return func(o Object) { o["after"] = Object{"accepted": count} } }
func Within(time string) Option    { return func(o Object) { o["within"] = time } }
func Recipient(name string) Option { return func(o Object) { o["recipient"] = name } }
func Reply(reply string) Option    { return func(o Object) { o["reply"] = reply } }
func For(time string) Option       { return func(o Object) { o["for"] = time } }
func Status(status string) Option  { return func(o Object) { o["status"] = status } }
func Where(name, v string) Option  { return func(o Object) { o[name] = v } }
func Penalty(time string) Option   { return func(o Object) { o["penalty"] = time } }

func with(object Object, options []Option) Object {
	for _, option := range options {
		option(object)
	}
	return object
}

// World is a relay with a clock of its own. Times are texts such as "5m" or "2d". A refused call ends the test.
type World struct {
	t    testing.TB
	ID   string
	host string
	port int
}

// New creates a world, which ends with the test.
func New(t testing.TB, options ...Option) *World {
	t.Helper()
	var created struct {
		ID   string
		SMTP struct {
			Host string
			Port int
		}
	}
	if err := Call("POST", "/worlds", with(Object{}, options), &created); err != nil {
		t.Fatal(err)
	}
	w := &World{t, created.ID, created.SMTP.Host, created.SMTP.Port}
	t.Cleanup(func() { _ = Call("DELETE", "/worlds/"+w.ID, nil, nil) })
	return w
}

// SMTPAddr is the host and port for smtp.SendMail.
func (w *World) SMTPAddr() string { return fmt.Sprintf("%s:%d", w.host, w.port) }

// Call sends a request below the path of the world.
func (w *World) Call(method, path string, body, found any) error {
	return Call(method, "/worlds/"+w.ID+path, body, found)
}

func (w *World) must(method, path string, body any) Object {
	w.t.Helper()
	found := Object{}
	if err := w.Call(method, path, body, &found); err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *World) Settle(options ...Option) Object {
	w.t.Helper()
	return w.must("POST", "/clock/settle", with(Object{}, options))
}
func (w *World) Advance(by string, options ...Option) Object {
	w.t.Helper()
	return w.must("POST", "/clock/advance", with(Object{"by": by}, options))
}
func (w *World) Crash(downFor string) {
	w.t.Helper()
	w.must("POST", "/crash", Object{"down_for": downFor})
}
func (w *World) Rule(rule Object) { w.t.Helper(); w.must("POST", "/rules", rule) }

// Mail is a parsed mail.
type Mail struct {
	ID                  int
	From, Subject, Text string
	To, Codes           []string
	Code                string
	Links               []struct{ URL, Text string }
}

// Wait waits for a mail that satisfies the conditions, such as Where("subject", "*code*") or Where("advance", "2d").
func (w *World) Wait(address string, conditions ...Option) Mail {
	w.t.Helper()
	query, mail := url.Values{}, Mail{}
	for name, value := range with(Object{}, conditions) {
		query.Set(name, fmt.Sprint(value))
	}
	if err := w.Call("GET", "/mailboxes/"+url.PathEscape(address)+"/wait?"+query.Encode(), nil, &mail); err != nil {
		w.t.Fatal(err)
	}
	return mail
}

// Destination is a remote domain, whose methods add rules (docs/lab.md).
type Destination struct {
	w    *World
	path string
}

func (w *World) Destination(domain string) *Destination {
	return &Destination{w, "/destinations/" + url.PathEscape(domain) + "/"}
}

// Does is any verb of docs/lab.md: Does("is_slow", Object{"time": "90s"}).
func (d *Destination) Does(verb string, body Object, options ...Option) *Destination {
	d.w.t.Helper()
	d.w.must("POST", d.path+verb, with(body, options))
	return d
}

func (d *Destination) Greylists(delay string) *Destination {
	return d.Does("greylists", Object{"delay": delay})
}
func (d *Destination) IsDown() *Destination { return d.Does("is_down", Object{}) }
func (d *Destination) IsDownFor(time string) *Destination {
	return d.Does("is_down_for", Object{"time": time})
}
func (d *Destination) Rejects(options ...Option) *Destination {
	return d.Does("rejects", Object{}, options...)
}
func (d *Destination) Defers(options ...Option) *Destination {
	return d.Does("defers", Object{}, options...)
}
func (d *Destination) Recovers() *Destination { return d.Does("recovers", Object{}) }

// Expectation asserts something about a recipient. A failure is t.Error with the timeline.
type Expectation struct {
	w       *World
	address string
	not     bool
}

func (w *World) Expect(address string) Expectation { return Expectation{w, address, false} }

// Never negates the next matcher.
func (e Expectation) Never() Expectation { return Expectation{e.w, e.address, !e.not} }

func (e Expectation) that(matcher string, args any) {
	e.w.t.Helper()
	found := e.w.must("POST", "/asserts", Object{"recipient": e.address, "matcher": matcher, "args": args, "not": e.not})
	if found["holds"] != true {
		e.w.t.Error(found["message"])
	}
}

func (e Expectation) WasDelivered()     { e.w.t.Helper(); e.that("was_delivered", Object{}) }
func (e Expectation) WasDeliveredOnce() { e.w.t.Helper(); e.that("was_delivered_once", Object{}) }
func (e Expectation) HasExpired()       { e.w.t.Helper(); e.that("has_expired", Object{}) }
func (e Expectation) WasDelayed()       { e.w.t.Helper(); e.that("was_delayed", Object{}) }
func (e Expectation) WasDeferred(times int) {
	e.w.t.Helper()
	e.that("was_deferred", Object{"times": times})
}
func (e Expectation) HasBounced(options ...Option) {
	e.w.t.Helper()
	e.that("has_bounced", with(Object{}, options))
}
func (e Expectation) WasAttemptedAt(seconds ...float64) {
	e.w.t.Helper()
	e.that("was_attempted_at", seconds)
}
func (e Expectation) CausedNotices(kinds ...string) { e.w.t.Helper(); e.that("caused_notices", kinds) }
