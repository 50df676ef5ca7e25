package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
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
	stdin    io.WriteCloser // the lab ends when it closes, with this process
)

// Finds the lab of DEFERD_LAB_URL, or else starts one that ends with this process.
func start() {
	if base = os.Getenv("DEFERD_LAB_URL"); base != "" {
		return
	}
	if err := startProcess(); err != nil {
		startErr = fmt.Errorf("no lab can be started (%w): install deferd, or set DEFERD_LAB_URL to the URL of a lab", err)
	}
}

func startProcess() error {
	command := []string{"deferd", "lab", "--http", "0", "--parent"}
	if _, err := exec.LookPath("deferd"); err != nil {
		// --no: npx runs the deferd of the project, and never one that it would get from a registry.
		command = append([]string{"npx", "--no"}, command...)
	}
	process := exec.Command(command[0], command[1:]...)
	process.Stderr = os.Stderr
	in, _ := process.StdinPipe()
	out, _ := process.StdoutPipe()
	if err := process.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s ended before its port was open: %v", strings.Join(command, " "), process.Wait())
	}
	var first struct{ HTTP string }
	if err := json.Unmarshal(line, &first); err != nil {
		return err
	}
	base, stdin = first.HTTP, in
	return nil
}

// A lab is on this machine: no proxy leads to it.
var client = &http.Client{Transport: &http.Transport{}}

// Call sends a request below /lab/v1, and stores the answer in found unless it is nil. Returns *Error for a refusal.
func Call(method, path string, body, found any) error {
	if starting.Do(start); startErr != nil {
		return startErr
	}
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, base+"/lab/v1"+path, &content)
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
