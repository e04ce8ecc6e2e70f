package testcluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrNoAudit says that the cluster was started without Options.Audit.
var ErrNoAudit = errors.New("the cluster was started without an audit log")

// AuditEvent is one completed request. The API server knows nothing of the
// object in it: the log is kept at metadata level.
type AuditEvent struct {
	// ID is the same for all that the API server says about one request.
	ID string
	// Verb is get, list, watch, create, update, patch, delete or
	// deletecollection, or the lower-case HTTP method of a request for
	// something that is no resource.
	Verb string
	// User is who authenticated, and ImpersonatedUser, if not empty, whose
	// rights the request was then judged by.
	User             string
	ImpersonatedUser string
	// UserAgent is what the client called itself.
	UserAgent  string
	RequestURI string
	// APIGroup, Resource, Subresource, Namespace and Name are what the request
	// was about. APIGroup is empty for the core group, Name for a create with a
	// generated name.
	APIGroup    string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	// Code is the HTTP status.
	Code int
	// Denied is set if the user lacked the right, to do this or to impersonate. What has
	// passed the authorizer can be answered by a 403 as well.
	Denied bool
	// DryRun is set if the request was to change nothing.
	DryRun bool
	// Stage is always ResponseComplete.
	Stage string
	// Received and Completed are times of the API server's clock.
	Received  time.Time
	Completed time.Time
}

// Actor is the user whose rights counted.
func (e AuditEvent) Actor() string {
	if e.ImpersonatedUser != "" {
		return e.ImpersonatedUser
	}
	return e.User
}

// auditLine is the part of an audit.k8s.io/v1 Event that AuditEvent shows.
type auditLine struct {
	AuditID          string                    `json:"auditID"`
	Stage            string                    `json:"stage"`
	RequestURI       string                    `json:"requestURI"`
	Verb             string                    `json:"verb"`
	UserAgent        string                    `json:"userAgent"`
	Received         time.Time                 `json:"requestReceivedTimestamp"`
	Completed        time.Time                 `json:"stageTimestamp"`
	User             struct{ Username string } `json:"user"`
	ImpersonatedUser struct{ Username string } `json:"impersonatedUser"`
	ResponseStatus   struct{ Code int }        `json:"responseStatus"`
	Annotations      map[string]string         `json:"annotations"`
	ObjectRef        struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
}

// Audit returns the requests that have completed so far, in the order of their
// completion, of those whose record mentions all of the texts: a user, a namespace, or what a
// client calls itself. A request is in the log before its client has seen the end of the
// answer, so a test finds every request it has made. A watch completes when it
// ends. Of a cluster that is offered they are those since the package first used it,
// of all who use it: to decode all of them takes minutes there. The log is gone after Stop.
func (c *Cluster) Audit(mentioned ...string) ([]AuditEvent, error) {
	return c.audited(func(line []byte) bool {
		return !slices.ContainsFunc(mentioned, func(text string) bool { return !bytes.Contains(line, []byte(text)) })
	})
}

// auditOwn is Audit without, of a cluster that is offered, what others have asked: what is not in a
// namespace of these tests, unless it was sent by a client that UserAgent names.
func (c *Cluster) auditOwn() ([]AuditEvent, error) {
	if !c.offered() {
		return c.Audit()
	}
	c.mu.Lock()
	namespaces := slices.Clone(c.namespaces)
	c.mu.Unlock()
	marks := [][]byte{[]byte(ownAgent())}
	for _, name := range namespaces {
		marks = append(marks, []byte(name))
	}
	events, err := c.audited(func(line []byte) bool {
		return slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Contains(line, mark) })
	})
	return Filter(events, func(e AuditEvent) bool {
		return strings.HasSuffix(e.UserAgent, ownAgent()) || slices.Contains(namespaces, e.Namespace)
	}), err
}

// audited reads the lines of the audit log that are wanted.
func (c *Cluster) audited(wanted func(line []byte) bool) ([]AuditEvent, error) {
	if !c.options.Audit {
		return nil, ErrNoAudit
	}
	log, err := os.Open(c.auditLog())
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	events, err := parseAudit(io.NewSectionReader(log, c.auditFrom, math.MaxInt64-c.auditFrom), wanted)
	if err := errors.Join(err, log.Close()); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return events, nil
}

// UserAgent is what a program calls itself that is run within the test process: others may
// run the same program on the same cluster.
func UserAgent(program string) string { return program + ownAgent() }

func ownAgent() string { return fmt.Sprintf("/test-%d", os.Getpid()) }

func (c *Cluster) auditLog() string { return filepath.Join(c.dir, "audit.log") }

// parseAudit decodes whole lines that are wanted. One without an end is still being written.
func parseAudit(log io.Reader, wanted func(line []byte) bool) ([]AuditEvent, error) {
	var events []AuditEvent
	lines := bufio.NewReaderSize(log, 1<<20)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil:
			return nil, err
		}
		if !wanted(line) {
			continue
		}
		var l auditLine
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, fmt.Errorf("line %d of the audit log: %w", number, err)
		}
		events = append(events, l.event())
	}
}

func (l auditLine) event() AuditEvent {
	return AuditEvent{
		ID:               l.AuditID,
		Verb:             l.Verb,
		User:             l.User.Username,
		ImpersonatedUser: l.ImpersonatedUser.Username,
		UserAgent:        l.UserAgent,
		RequestURI:       l.RequestURI,
		APIGroup:         l.ObjectRef.APIGroup,
		Resource:         l.ObjectRef.Resource,
		Subresource:      l.ObjectRef.Subresource,
		Namespace:        l.ObjectRef.Namespace,
		Name:             l.ObjectRef.Name,
		Code:             l.ResponseStatus.Code,
		Denied:           l.ResponseStatus.Code == 403 && l.Annotations["authorization.k8s.io/decision"] != "allow",
		DryRun:           dryRun(l.RequestURI),
		Stage:            l.Stage,
		Received:         l.Received,
		Completed:        l.Completed,
	}
}

// dryRun reads the query of the request, the only place in which a log at
// metadata level shows it. A delete that carries the option in its body is
// therefore not recognized.
func dryRun(requestURI string) bool {
	u, err := url.ParseRequestURI(requestURI)
	return err == nil && slices.Contains(u.Query()["dryRun"], "All")
}

// Filter returns the events that every condition holds for.
func Filter(events []AuditEvent, conditions ...func(AuditEvent) bool) []AuditEvent {
	return slices.DeleteFunc(slices.Clone(events), func(e AuditEvent) bool {
		for _, holds := range conditions {
			if !holds(e) {
				return true
			}
		}
		return false
	})
}

// ByActor holds for requests judged by the rights of the user.
func ByActor(user string) func(AuditEvent) bool {
	return func(e AuditEvent) bool { return e.Actor() == user }
}

// ByVerb holds for requests with one of the verbs.
func ByVerb(verbs ...string) func(AuditEvent) bool {
	return func(e AuditEvent) bool { return slices.Contains(verbs, e.Verb) }
}

// OnResource holds for requests about the resource, a plural in lower case, and
// its subresources.
func OnResource(group, resource string) func(AuditEvent) bool {
	return func(e AuditEvent) bool { return e.APIGroup == group && e.Resource == resource }
}

// InNamespace holds for requests about the namespace and what is in it.
func InNamespace(name string) func(AuditEvent) bool {
	return func(e AuditEvent) bool { return e.Namespace == name }
}

// Persisted holds for requests that succeeded in changing something: writes
// with a success, dry runs excepted.
func Persisted(e AuditEvent) bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return e.Code/100 == 2 && !e.DryRun
	}
	return false
}

// Unread holds for creations whose content the API server did not get to its end, since the client
// died or hung up while it sent it. It answers 500 to nobody, and the log cannot name the object. Nor
// can it name one that was refused before its content was read, by a 403 or a 429: that is not meant.
func Unread(e AuditEvent) bool {
	return e.Verb == "create" && e.Name == "" && e.Code == http.StatusInternalServerError
}
