package lab

import (
	"encoding/json"
	"errors"
	"net/smtp"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func send(t *testing.T, w *World, to string) {
	t.Helper()
	if err := smtp.SendMail(w.SMTPAddr(), nil, "app@us.example", []string{to}, []byte("Subject: Your code\r\n\r\nYour code is 4711.\r\n")); err != nil {
		t.Fatal(err)
	}
}

// A TB that keeps the text of its errors.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Helper()           {}
func (r *recorder) Error(args ...any) { r.text, _ = args[0].(string) }

func TestTimelineOfAFailure(t *testing.T) {
	w := New(t)
	send(t, w, "ann@x.example")
	w.Settle(Accepted(1))
	failing := &recorder{TB: t}
	Expectation{&World{failing, w.ID, "", 0}, "ann@x.example", false}.HasBounced(Where("status", "5.1.1"))
	if !strings.Contains(failing.text, "to have bounced 5.1.1, but its last attempt was delivered") || !strings.Contains(failing.text, "+0s accepted from") {
		t.Errorf("the failure has the text %q", failing.text)
	}
}

// Without deferd in PATH, npx is told to get nothing from a registry, and the error says how to go on.
func TestNoLab(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "npx"), []byte("#!/bin/sh\ntest \"$1\" = --no && exit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	if err := startProcess(); err == nil || err.Error() != "npx --no deferd lab --http 0 --parent ended before its port was open: exit status 7" {
		t.Errorf("the error is %v", err)
	}
}

type step struct {
	Send *struct {
		From    string
		To      []string
		Content string
	}
	Call   string
	Body   any
	Status int
	Match  any
}

// True when found has all that expected has; objects may have more members.
func matches(expected, found any) bool {
	switch expected := expected.(type) {
	case map[string]any:
		members, _ := found.(map[string]any)
		for name, value := range expected {
			if inner, ok := members[name]; !ok || !matches(value, inner) {
				return false
			}
		}
		return members != nil
	case []any:
		list, _ := found.([]any)
		for i := range expected {
			if i >= len(list) || !matches(expected[i], list[i]) {
				return false
			}
		}
		return len(list) == len(expected)
	}
	return reflect.DeepEqual(expected, found)
}

// The cases that the clients of all languages run.
func TestContract(t *testing.T) {
	var contract struct {
		Cases []struct {
			Name  string
			World Object
			Steps []step
		}
	}
	text, err := os.ReadFile("../contract.json")
	if err == nil {
		err = json.Unmarshal(text, &contract)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range contract.Cases {
		t.Run(one.Name, func(t *testing.T) {
			w := New(t, func(o Object) {
				for name, value := range one.World {
					o[name] = value
				}
			})
			for _, step := range one.Steps {
				if mail := step.Send; mail != nil {
					if err := smtp.SendMail(w.SMTPAddr(), nil, mail.From, mail.To, []byte(mail.Content)); err != nil {
						t.Fatal(err)
					}
					continue
				}
				method, path, _ := strings.Cut(step.Call, " ")
				var found any
				status, refused := 0, (*Error)(nil)
				if err := w.Call(method, path, step.Body, &found); errors.As(err, &refused) {
					list := make([]any, len(refused.Errors))
					for i, one := range refused.Errors {
						list[i] = one
					}
					status, found = refused.Status, Object{"kind": refused.Kind, "detail": refused.Detail, "errors": list}
				} else if err != nil {
					t.Fatal(err)
				}
				if status != step.Status || (step.Match != nil && !matches(step.Match, found)) {
					t.Fatalf("%s: %d %v", step.Call, status, found)
				}
			}
		})
	}
}
