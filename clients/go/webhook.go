package lab

import "net/url"

// Webhook gets events of the world. Secret verifies the signatures of its requests.
type Webhook struct {
	w            *World
	path, Secret string
}

// Webhook adds a webhook: Where("types", []string{"recipient.bounced"}), and Where("url", server.URL) for an application that gets the requests.
func (w *World) Webhook(name string, options ...Option) *Webhook {
	w.t.Helper()
	created := w.must("POST", "/webhooks", with(Object{"name": name}, options))
	secret, _ := created["secret"].(string)
	return &Webhook{w, "/webhooks/" + url.PathEscape(name), secret}
}

// WebhookRequest is a request that a webhook has got. Status is 0 when there was no answer.
type WebhookRequest struct {
	At      float64
	Headers map[string]string
	Body    string
	Status  int
}

func (h *Webhook) Requests() []WebhookRequest {
	h.w.t.Helper()
	var found struct{ Requests []WebhookRequest }
	if err := h.w.Call("GET", h.path+"/requests", nil, &found); err != nil {
		h.w.t.Fatal(err)
	}
	return found.Requests
}

// Does scripts the answers: Where("is_down_for", "3h"), Where("replies", 500) with Where("first", 2), or Where("recovers", true).
func (h *Webhook) Does(options ...Option) {
	h.w.t.Helper()
	h.w.must("POST", h.path+"/script", with(Object{}, options))
}
