package errclass_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"janus.io/janus/internal/errclass"
)

// reasons are the words that conditions and items may have.
var reasons = map[string]bool{
	errclass.AccessDenied: true, errclass.AlreadyExists: true, errclass.FieldConflict: true, errclass.Invalid: true, errclass.KindNotFound: true,
	errclass.NamespaceNotFound: true, errclass.NotFound: true, errclass.ServerUnavailable: true, errclass.StaleVersion: true,
	errclass.Terminating: true, errclass.TooLarge: true, errclass.TooManyRequests: true,
}

const quoted = "c4n4ry-v4lue"

// FuzzClassify: any Status has a class and a reason, which outlive wrapping; of a
// sensitive object no message is quoted; and what is shown can be shown.
func FuzzClassify(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"code":409}`, `{"code":409,"details":{"causes":[null,{"reason":"FieldManagerConflict","field":".a[name=\"` + quoted + `\"]"}]}}`,
		`{"code":404,"details":{"kind":"namespaces"}}`, `{"code":500,"message":"request is too large ` + quoted + `"}`, `{"code":-1,"reason":"x\u001b[31m"}`,
		`{"code":403,"details":{"causes":[{"reason":"NamespaceTerminating"}]}}`, `{"code":429,"details":{"retryAfterSeconds":-7}}`, `{"code":504,"details":{"retryAfterSeconds":2147483647}}`,
		`{"code":422,"details":{"causes":[{"field":"spec.x[` + quoted + `]","message":"` + quoted + `"}]}}`, `{"code":200,"status":"Success"}`,
		`{"code":422,"details":{"causes":[{"field":"data[` + quoted + `]"},{"field":"` + quoted + `"}]}}`,
	} {
		f.Add([]byte(text), "patch", "ConfigMap shop/a")
	}
	f.Add([]byte(`{"code":409,"reason":"AlreadyExists"}`), "\x00\xff", strings.Repeat("ä", 2000))
	f.Fuzz(func(t *testing.T, data []byte, op, target string) {
		var status metav1.Status
		if json.Unmarshal(data, &status) != nil {
			return
		}
		err := error(&apierrors.StatusError{ErrStatus: status})
		class, reason := errclass.Classify(err)
		if !reasons[reason] {
			t.Fatalf("reason %q", reason)
		}
		status.Message += " " + quoted
		for _, sensitive := range []bool{false, true} {
			wrapped := errclass.Wrap(&apierrors.StatusError{ErrStatus: status}, op, target, sensitive)
			if c, r := errclass.Classify(wrapped); !sensitive && !strings.Contains(status.Message, "o") && (c != class || r != reason) {
				t.Fatalf("%v %s became %v %s", class, reason, c, r)
			}
			if errclass.RetryAfter(wrapped) < 0 {
				t.Fatalf("a wait of %s", errclass.RetryAfter(wrapped))
			}
			checkShown(t, errclass.Message(wrapped))
			if sensitive && strings.Contains(strings.TrimPrefix(wrapped.Error(), op+" "+target), quoted) && !names(status, quoted) {
				t.Fatalf("it quotes the object: %v", wrapped)
			}
		}
	})
}

// names reports whether the parts of a Status that are shown have a text: the reason,
// the types of causes, and fields up to where they would quote a value.
func names(s metav1.Status, text string) bool {
	if strings.Contains(string(s.Reason), text) {
		return true
	}
	if s.Details == nil {
		return false
	}
	for _, c := range s.Details.Causes {
		if strings.Contains(string(c.Type), text) || strings.Contains(errclass.FieldOnly(c.Field), text) {
			return true
		}
	}
	return false
}

func checkShown(t *testing.T, message string) {
	t.Helper()
	if len(message) > errclass.MaxMessage || !utf8.ValidString(message) {
		t.Fatalf("%d bytes: %q", len(message), message)
	}
	for _, r := range message {
		if !unicode.IsPrint(r) {
			t.Fatalf("%q has %q", message, r)
		}
	}
}

// answer is a server that always answers the same.
type answer struct {
	code        int
	contentType string
	body        []byte
}

func (a answer) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: a.code, Status: http.StatusText(a.code), Request: req, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {a.contentType}}, Body: io.NopCloser(strings.NewReader(string(a.body))), ContentLength: int64(len(a.body)),
	}, nil
}

// FuzzAnswers: whatever comes back from what should be an API server, an answer that
// nobody would take for a refusal is of unknown outcome.
func FuzzAnswers(f *testing.F) {
	for _, code := range []int{0, 100, 199, 200, 201, 204, 299, 301, 304, 400, 401, 403, 404, 409, 410, 413, 418, 422, 429, 499, 500, 502, 503, 504, 599, 999} {
		f.Add(code, "text/html", []byte("<html>"+quoted+"</html>"))
		f.Add(code, "application/json", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict"}`))
	}
	f.Add(200, "application/json", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure"}`))
	f.Add(500, "application/vnd.kubernetes.protobuf", []byte("k8s\x00\x00"))
	f.Add(429, "", []byte{})
	f.Fuzz(func(t *testing.T, code int, contentType string, body []byte) {
		if code < 100 || code > 999 {
			return
		}
		client, err := rest.RESTClientForConfigAndClient(&rest.Config{
			Host: "http://x", APIPath: "/api", QPS: -1,
			ContentConfig: rest.ContentConfig{GroupVersion: &schema.GroupVersion{Version: "v1"}, NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
		}, &http.Client{Transport: answer{code, contentType, body}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }})
		if err != nil {
			t.Fatal(err)
		}
		err = client.Post().MaxRetries(0).Resource("configmaps").Body([]byte("{}")).Do(context.Background()).Error()
		class, reason := errclass.Classify(err)
		if err == nil {
			return
		}
		if !reasons[reason] {
			t.Fatalf("reason %q of %v", reason, err)
		}
		if code >= 500 && code != http.StatusInternalServerError && class != errclass.Unknown && !declares(body) {
			t.Fatalf("%d is %v: %v", code, class, err)
		}
		checkShown(t, errclass.Message(errclass.Wrap(err, "create", "ConfigMap shop/a", true)))
	})
}

// declares reports whether a body says itself what it is.
func declares(body []byte) bool {
	var status metav1.Status
	return json.Unmarshal(body, &status) == nil && status.Kind == "Status" || strings.HasPrefix(string(body), "k8s\x00")
}
