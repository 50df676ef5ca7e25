package lab

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Five days of mail: greylisting, a crash, an outage, a webhook of the application, and a code that is waited for.
func TestFiveDays(t *testing.T) {
	told := 0
	application := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told++ }))
	defer application.Close()
	w := New(t, Seed(7), Config(Object{"maximal_queue_lifetime": "5d"}))
	hook := w.Webhook("app", Where("types", []string{"recipient.expired"}), Where("url", application.URL))
	w.Destination("slow.example").Greylists("5m")
	w.Destination("gone.example").IsDown()
	send(t, w, "ann@slow.example")
	send(t, w, "eve@gone.example")
	w.Advance("1m", Accepted(2))
	w.Crash("2m")
	w.Settle()
	w.Expect("ann@slow.example").WasDeliveredOnce()
	if code := w.Wait("ann@slow.example", Where("subject", "*code*")).Code; code != "4711" {
		t.Errorf("the code is %q", code)
	}
	w.Expect("eve@gone.example").HasExpired()
	w.Expect("eve@gone.example").Never().WasDelivered()
	if got := hook.Requests(); told != 1 || got[0].Status != 200 || got[0].At < 5*86400 {
		t.Errorf("the application was told %d times: %v", told, got)
	}
}
