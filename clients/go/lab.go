// Package lab is deferd lab from Go: a relay in virtual time, with remote servers that fail as a test says (docs/lab.md of deferd).
package lab

import (
	"fmt"
	"net/url"
	"testing"
)

// Option is a member of a new world, or of a call.
type Option func(Object)

// Where is any member: Where("status", "5.1.1").
func Where(name string, value any) Option { return func(o Object) { o[name] = value } }
func Seed(seed int) Option                { return Where("seed", seed) }
func Config(config Object) Option         { return Where("config", config) }
func Within(time string) Option           { return Where("within", time) }
func Accepted(count int) Option           { return Where("after", Object{"accepted": count}) }

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

func (w *World) Crash(downFor string) Object {
	w.t.Helper()
	return w.must("POST", "/crash", Object{"down_for": downFor})
}

// Mail is a parsed mail.
type Mail struct {
	ID                        int
	From, Subject, Text, Code string
	To, Codes                 []string
	Links                     []struct{ URL, Text string }
}

// Wait waits for a mail that satisfies the conditions, such as Where("subject", "*code*") or Where("advance", "2d").
func (w *World) Wait(address string, conditions ...Option) (mail Mail) {
	w.t.Helper()
	query := url.Values{}
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

// Does is any verb of docs/lab.md: Does("is_slow", Where("time", "90s")).
func (d *Destination) Does(verb string, options ...Option) *Destination {
	d.w.t.Helper()
	d.w.must("POST", d.path+verb, with(Object{}, options))
	return d
}

func (d *Destination) Greylists(delay string) *Destination {
	return d.Does("greylists", Where("delay", delay))
}
func (d *Destination) IsDown() *Destination { return d.Does("is_down") }
func (d *Destination) IsDownFor(time string) *Destination {
	return d.Does("is_down_for", Where("time", time))
}
func (d *Destination) Rejects(options ...Option) *Destination { return d.Does("rejects", options...) }
func (d *Destination) Defers(options ...Option) *Destination  { return d.Does("defers", options...) }
func (d *Destination) Recovers() *Destination                 { return d.Does("recovers") }

// Expectation asserts something about a recipient. A failure is t.Error with the timeline.
type Expectation struct {
	w       *World
	address string
	not     bool
}

func (w *World) Expect(address string) Expectation { return Expectation{w, address, false} }

// Never negates the next matcher.
func (e Expectation) Never() Expectation { return Expectation{e.w, e.address, !e.not} }

// That is any matcher of docs/lab.md.
func (e Expectation) That(matcher string, args any) {
	e.w.t.Helper()
	found := e.w.must("POST", "/asserts", Object{"recipient": e.address, "matcher": matcher, "args": args, "not": e.not})
	if found["holds"] != true {
		e.w.t.Error(found["message"])
	}
}

func (e Expectation) WasDelivered()     { e.w.t.Helper(); e.That("was_delivered", Object{}) }
func (e Expectation) WasDeliveredOnce() { e.w.t.Helper(); e.That("was_delivered_once", Object{}) }
func (e Expectation) HasExpired()       { e.w.t.Helper(); e.That("has_expired", Object{}) }
func (e Expectation) WasDelayed()       { e.w.t.Helper(); e.That("was_delayed", Object{}) }
func (e Expectation) HasBounced(options ...Option) {
	e.w.t.Helper()
	e.That("has_bounced", with(Object{}, options))
}
func (e Expectation) WasDeferred(options ...Option) {
	e.w.t.Helper()
	e.That("was_deferred", with(Object{}, options))
}
func (e Expectation) WasSuppressed(options ...Option) {
	e.w.t.Helper()
	e.That("was_suppressed", with(Object{}, options))
}
func (e Expectation) HasStartedWithin(time string) {
	e.w.t.Helper()
	e.That("has_started_within", Object{"time": time})
}
func (e Expectation) WasAttemptedAt(seconds ...float64) {
	e.w.t.Helper()
	e.That("was_attempted_at", seconds)
}
func (e Expectation) CausedNotices(kinds ...string) { e.w.t.Helper(); e.That("caused_notices", kinds) }
