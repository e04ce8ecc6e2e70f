package faultinject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// At names an attempt to send a request: the Nth, counted from 0, with a key such
// as "PUT transactions/txn/status". Requests that are sent side by side come in any
// order, but each has its own key, so a name means the same request in every run.
type At struct {
	Key string
	Nth int
}

func (a At) String() string { return fmt.Sprintf("%s#%d", a.Key, a.Nth) }

// Kind is what sort of request a call is.
type Kind string

// The kinds. Aside are requests at which no fault happens of itself: events, which are
// sent at any time and on which nothing depends, and the question whether the API server
// is ready.
const (
	Write Kind = "write"
	Read  Kind = "read"
	Watch Kind = "watch"
	Aside Kind = "aside"
)

// Call is one attempt to send a request.
type Call struct {
	At
	Kind Kind
	// Process counts the processes of Janus, from 0.
	Process int
	// Sent and Answered are positions in one order of all that happened on the Line;
	// Answered is 0 as long as there is no answer.
	Sent, Answered int
	Method, Path   string
	// Resource, Namespace, Name and Subresource are what the request is about; the
	// name of a create is taken from the body.
	Resource, Namespace, Name, Subresource string
	// User is whom the request impersonates; empty for a request of Janus itself.
	User string
	// FieldManager is what the request says in its query.
	FieldManager string
	DryRun       bool
	// Body is what was sent.
	Body []byte
	// Code and Answer are what the API server said, which with a fault is not what
	// Janus was told. Code is 0 if the request never reached the API server.
	Code   int
	Answer []byte
	Fault  Fault
	// Older is set when the Line knew an older answer to the same read.
	Older bool
}

// Landed reports whether the API server has accepted the request as more than a try.
func (c Call) Landed() bool { return c.Kind == Write && c.Code/100 == 2 && !c.DryRun }

// Faults lists the faults that can happen to the call.
func (c Call) Faults() []Fault {
	switch c.Kind {
	case Write:
		return Writes
	case Watch:
		return Watches
	case Read:
		var out []Fault
		for _, f := range Reads {
			list := c.Method == http.MethodGet && c.Name == ""
			if (f == Truncated || f == Expired) && !list || f == FalseNotFound && c.Name == "" || f == Stale && !c.Older {
				continue
			}
			if c.Method != http.MethodGet && f != CrashAfter && f != ReadFailed && f != Starting && f != Started {
				continue // a review is no object
			}
			out = append(out, f)
		}
		return out
	}
	return nil
}

// callOf describes a request. names makes names the same in every run.
func callOf(req *http.Request, body []byte, names func(string) string) Call {
	query := req.URL.Query()
	c := Call{
		Kind: Write, Method: req.Method, Path: req.URL.Path, Body: body,
		User: req.Header.Get("Impersonate-User"), FieldManager: query.Get("fieldManager"), DryRun: query.Has("dryRun"),
	}
	c.split()
	var sent struct {
		DryRun   []string `json:"dryRun"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	create := req.Method == http.MethodPost && c.Name == ""
	if (create || bytes.Contains(body, []byte("dryRun"))) && json.Unmarshal(body, &sent) == nil {
		c.DryRun = c.DryRun || len(sent.DryRun) > 0
		if create {
			c.Name = sent.Metadata.Name
		}
	}
	verb := req.Method
	switch {
	case query.Has("watch"):
		c.Kind, verb = Watch, "WATCH"
	case c.Path == readyPath:
		c.Kind = Aside
	case req.Method == http.MethodGet:
		c.Kind = Read
	case c.Resource == "events":
		c.Kind = Aside
	case strings.HasSuffix(c.Resource, "accessreviews"):
		c.Kind = Read
	}
	if c.DryRun {
		verb += "?dryRun"
	}
	key := []string{c.Resource, names(c.Name), c.Subresource}
	if c.Resource == "" {
		key = []string{names(req.URL.Path)}
	}
	c.Key = verb + " " + strings.TrimRight(strings.Join(key, "/"), "/")
	return c
}

// split takes the path of a resource apart: /api/v1/… or /apis/GROUP/VERSION/…,
// with or without a namespace. Any other path is left whole.
func (c *Call) split() {
	parts := strings.Split(strings.Trim(c.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		c.Namespace, parts = parts[1], parts[2:]
	}
	c.Resource = parts[0]
	if len(parts) > 1 {
		c.Name = parts[1]
	}
	if len(parts) > 2 {
		c.Subresource = parts[2]
	}
}
