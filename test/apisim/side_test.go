package apisim_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
)

// object is an object as JSON has it.
type object = map[string]any

// side is one of the two servers that are compared, and what it has answered. Both
// are sent the same requests, and what they make up themselves, such as uids, is
// known by the order in which it was first seen.
type side struct {
	name   string
	host   string
	client *http.Client
	uids   registry
	rvs    registry
	// seen are the versions of each object that were answered, by path.
	seen map[string][]object
}

func newSide(t testing.TB, name string, config *rest.Config) *side {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	return &side{name: name, host: strings.TrimSuffix(config.Host, "/"), client: client}
}

// forget begins a new sequence.
func (s *side) forget() {
	s.uids, s.rvs, s.seen = registry{}, registry{}, map[string][]object{}
}

// registry numbers values by the order in which they were first seen.
type registry struct {
	number map[string]int
	values []string
}

func (r *registry) token(kind, value string) string {
	if r.number == nil {
		r.number = map[string]int{}
	}
	n, ok := r.number[value]
	if !ok {
		n = len(r.values)
		r.number[value] = n
		r.values = append(r.values, value)
	}
	return fmt.Sprintf("<%s %d>", kind, n)
}

// at is the n-th value of a registry, or something that it does not have.
func (r *registry) at(n int, otherwise string) string {
	if n < 0 || n >= len(r.values) {
		return otherwise
	}
	return r.values[n]
}

// operation is a request. Its body may name what the side has answered before.
type operation struct {
	method, path, query, contentType, agent, accept, user string
	body                                                  func(*side) any
}

func (o operation) String() string {
	out := o.method + " " + o.path
	if o.query != "" {
		out += "?" + o.query
	}
	return out + " " + o.contentType
}

// answer is what a side has answered, as it is and made comparable.
type answer struct {
	code int
	raw  any
	sent string
	same any
}

// send sends a request and remembers the object in the answer.
func (s *side) send(t testing.TB, o operation) answer {
	t.Helper()
	resp, sent := s.open(context.Background(), t, o)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	out := answer{code: resp.StatusCode, sent: sent}
	if err := utiljson.Unmarshal(data, &out.raw); err != nil {
		out.raw = string(data)
	}
	if obj, ok := out.raw.(object); ok && out.code < 300 && !strings.Contains(o.query, "dryRun") {
		if key := keyOf(o, obj); key != "" {
			s.seen[key] = append(s.seen[key], obj)
		}
	}
	out.same = s.comparable(out.raw)
	return out
}

// open sends a request and returns the answer unread.
func (s *side) open(ctx context.Context, t testing.TB, o operation) (*http.Response, string) {
	t.Helper()
	var body []byte
	if o.body != nil {
		switch content := o.body(s).(type) {
		case string:
			body = []byte(content)
		default:
			var err error
			body, err = json.Marshal(content)
			require.NoError(t, err)
		}
	}
	url := s.host + o.path
	if o.query != "" {
		url += "?" + o.query
	}
	req, err := http.NewRequestWithContext(ctx, o.method, url, bytes.NewReader(body))
	require.NoError(t, err)
	if o.contentType != "" {
		req.Header.Set("Content-Type", o.contentType)
	}
	req.Header.Set("Accept", cmp.Or(o.accept, "application/json"))
	req.Header.Set("User-Agent", o.agent)
	if o.user != "" {
		req.Header.Set("Impersonate-User", o.user)
	}
	resp, err := s.client.Do(req)
	require.NoError(t, err, "%s: %s", s.name, o)
	return resp, string(body)
}

// decoded reads one JSON object.
func decoded(t testing.TB, from io.Reader) object {
	t.Helper()
	var obj object
	require.NoError(t, json.NewDecoder(from).Decode(&obj))
	return obj
}

// keyOf is under what an answered object is remembered.
func keyOf(o operation, obj object) string {
	metadata, _ := obj["metadata"].(object)
	name, _ := metadata["name"].(string)
	if kind, _ := obj["kind"].(string); name == "" || kind == "PartialObjectMetadata" || strings.HasSuffix(kind, "List") {
		return ""
	}
	path := strings.TrimSuffix(o.path, "/status")
	if o.method == http.MethodPost {
		path += "/" + name
	}
	return path
}

// version returns a copy of the n-th last version of an object that was answered, or
// nil.
func (s *side) version(path string, back int) object {
	list := s.seen[path]
	if back >= len(list) {
		return nil
	}
	return runtime.DeepCopyJSON(list[len(list)-1-back])
}

var (
	uidPattern     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timePattern    = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000 UTC)?`)
	datePattern    = regexp.MustCompile(`time\.Date\([^()]*\)|Date\(\d[^()]*\)`)
	pointerPattern = regexp.MustCompile(`0x[0-9a-f]{6,}`)
	recordPattern  = regexp.MustCompile(`(precondition|record) \((\d+)\)`)
	kindPattern    = regexp.MustCompile(`is missing in '\{.*\}'`)
	metaPattern    = regexp.MustCompile(`ResourceVersion in object meta: (\d+)`)
	patchPattern   = regexp.MustCompile(`Invalid value: "\{.*\}": `)
	suffixPattern  = regexp.MustCompile(`(generated-[0-9]+-)[a-z0-9]{5}`)
)

// comparable returns an answer with what differs for good reasons replaced.
func (s *side) comparable(x any) any {
	switch x := x.(type) {
	case object:
		out := make(object, len(x))
		for _, k := range slices.Sorted(maps.Keys(x)) {
			out[s.withTokens(k)] = s.field(x, k)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = s.comparable(x[i])
		}
		return out
	case string:
		return s.text(x)
	default:
		return x
	}
}

func (s *side) field(of object, k string) any {
	v := of[k]
	text, isText := v.(string)
	switch {
	case k == "metadata" && strings.HasSuffix(fmt.Sprint(of["kind"]), "List"):
		// The version of a list is that of the whole store.
		return nil
	case isText && k == "uid":
		return s.uids.token("uid", text)
	case isText && k == "resourceVersion":
		return s.rvs.token("version", text)
	case isText && (k == "time" || k == "creationTimestamp" || k == "deletionTimestamp" || k == "lastTransitionTime"):
		return "<time>"
	case k == "managedFields":
		list, _ := s.comparable(v).([]any)
		slices.SortStableFunc(list, func(a, b any) int {
			return cmp.Compare(entryOrder(a), entryOrder(b))
		})
		return list
	case isText && k == "message":
		return ordered(s.text(text))
	case k == "causes":
		list, _ := s.comparable(v).([]any)
		slices.SortStableFunc(list, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		return list
	default:
		return s.comparable(v)
	}
}

func entryOrder(x any) string {
	e, _ := x.(object)
	return fmt.Sprint(e["operation"], e["manager"], e["subresource"], e["apiVersion"], e["fieldsV1"])
}

// ordered sorts what a message lists: errors come in the order of a map's keys.
func ordered(message string) string {
	if head, _, ok := strings.Cut(message, "): "); ok && strings.Contains(message, "field not declared in schema") {
		// The check ends with the first field that it does not know, and begins anywhere.
		return head + "): field not declared in schema"
	}
	if head, list, ok := strings.Cut(message, "errors:\n  "); ok {
		parts := strings.Split(list, "\n  ")
		slices.Sort(parts)
		return head + strings.Join(parts, "\n")
	}
	before, list, ok := strings.Cut(message, "[")
	if !ok || !strings.HasSuffix(list, "]") {
		return message
	}
	parts := strings.Split(strings.TrimSuffix(list, "]"), ", ")
	slices.Sort(parts)
	return before + "[" + strings.Join(parts, ", ") + "]"
}

// withTokens replaces uids within a text.
func (s *side) withTokens(x string) string {
	if len(x) < 36 {
		return x
	}
	return uidPattern.ReplaceAllStringFunc(x, func(uid string) string { return s.uids.token("uid", uid) })
}

// text replaces what differs within a text.
func (s *side) text(x string) string {
	if len(x) > 20000 {
		return x
	}
	x = patchPattern.ReplaceAllString(x, `Invalid value: <what was patched>: `)
	x = kindPattern.ReplaceAllString(x, "is missing in <body>")
	x = s.withTokens(x)
	x = timePattern.ReplaceAllString(x, "<time>")
	x = datePattern.ReplaceAllString(x, "<time>")
	x = pointerPattern.ReplaceAllString(x, "<pointer>")
	x = suffixPattern.ReplaceAllString(x, "$1<suffix>")
	x = metaPattern.ReplaceAllStringFunc(x, func(m string) string {
		return "ResourceVersion in object meta: " + s.rvs.token("version", metaPattern.FindStringSubmatch(m)[1])
	})
	return recordPattern.ReplaceAllStringFunc(x, func(m string) string {
		parts := recordPattern.FindStringSubmatch(m)
		return parts[1] + " (" + s.rvs.token("version", parts[2]) + ")"
	})
}
