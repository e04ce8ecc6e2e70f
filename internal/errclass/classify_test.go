package errclass_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"janus.io/janus/internal/errclass"
)

var (
	configMaps = schema.GroupResource{Resource: "configmaps"}
	namespaces = schema.GroupResource{Resource: "namespaces"}
	widget     = schema.GroupKind{Group: "example.com", Kind: "Widget"}
)

// status is an answer of the API server with the given code.
func status(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
		Details: &metav1.StatusDetails{Causes: causes},
	}}
}

// own is an error that has been classified before.
func own(class errclass.Class, reason string) error {
	return errclass.New(class, reason, "lock", "ConfigMap shop/a", "another client holds it")
}

// denied is how the API server tells of a webhook that has denied a request.
const denied = `admission webhook "guard.example.com" denied the request: in use`

// taken is the complaint about a field.
func taken(message string) metav1.StatusCause {
	return metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec", Message: "Invalid value: " + message}
}

var classified = []struct {
	name   string
	err    error
	class  errclass.Class
	reason string
}{
	{"an error of our own", own(errclass.Conflict, errclass.Drifted), errclass.Conflict, errclass.Drifted},
	{"an error of our own that names another cause", &errclass.Error{Class: errclass.Retryable, Reason: errclass.LockHeld,
		Err: apierrors.NewNotFound(configMaps, "a")}, errclass.Retryable, errclass.LockHeld},

	{"no such kind", &meta.NoKindMatchError{GroupKind: widget}, errclass.Terminal, errclass.KindNotFound},
	{"no such resource", &meta.NoResourceMatchError{PartialResource: configMaps.WithVersion("v1")}, errclass.Terminal, errclass.KindNotFound},

	{"422 of a port that another has", status(422, metav1.StatusReasonInvalid, "", taken("31722: provided port is already allocated")), errclass.Terminal, errclass.AlreadyAllocated},
	{"422 of a port and an address that others have", status(422, metav1.StatusReasonInvalid, "", taken("31722: provided port is already allocated"),
		taken("failed to allocate IP 10.0.0.9: provided IP is already allocated")), errclass.Terminal, errclass.AlreadyAllocated},
	{"422 of a port that another has, and of content", status(422, metav1.StatusReasonInvalid, "", taken("31722: provided port is already allocated"),
		taken("may not be negative")), errclass.Terminal, errclass.Invalid},

	{"500 of a webhook that does not answer", status(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "a.example.com": failed to call webhook`),
		errclass.Unknown, errclass.WebhookUnavailable},

	{"409 of a stale resourceVersion", apierrors.NewConflict(configMaps, "a", errors.New("the object has been modified")), errclass.Retryable, errclass.StaleVersion},
	{"409 of a field manager", apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Field: ".data.a"}}, "conflict"), errclass.Conflict, errclass.FieldConflict},
	{"409 of an existing object", apierrors.NewAlreadyExists(configMaps, "a"), errclass.Conflict, errclass.AlreadyExists},
	{"409 with another cause", status(409, metav1.StatusReasonConflict, "uid", metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid}), errclass.Retryable, errclass.StaleVersion},
	{"409 without details", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict}}, errclass.Retryable, errclass.StaleVersion},

	{"404 of a webhook", status(404, metav1.StatusReasonNotFound, denied), errclass.Terminal, errclass.Rejected},
	{"409 of a webhook", status(409, metav1.StatusReasonConflict, denied), errclass.Terminal, errclass.Rejected},
	{"409 of a webhook that an object exists", status(409, metav1.StatusReasonAlreadyExists, denied), errclass.Terminal, errclass.Rejected},
	{"409 of a webhook with a cause", status(409, metav1.StatusReasonConflict, denied, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict}), errclass.Terminal, errclass.Rejected},
	{"410 of a webhook", status(410, metav1.StatusReasonGone, denied), errclass.Terminal, errclass.Rejected},
	{"401 of a webhook", status(401, metav1.StatusReasonUnauthorized, denied), errclass.Terminal, errclass.Rejected},
	{"401 of a policy", status(401, metav1.StatusReasonUnauthorized, `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`), errclass.Terminal, errclass.Rejected},
	{"403 of a webhook", status(403, metav1.StatusReasonForbidden, denied), errclass.Terminal, errclass.AccessDenied},
	{"429 of a webhook", status(429, metav1.StatusReasonTooManyRequests, denied), errclass.Retryable, errclass.TooManyRequests},
	{"409 that quotes a webhook", status(409, metav1.StatusReasonConflict, "the object a says: "+denied), errclass.Retryable, errclass.StaleVersion},

	{"403", apierrors.NewForbidden(configMaps, "a", errors.New("no")), errclass.Terminal, errclass.AccessDenied},
	{"403 of a terminating namespace", status(403, metav1.StatusReasonForbidden, "being terminated", metav1.StatusCause{Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace"}), errclass.Terminal, errclass.Terminating},
	{"403 of a quota", apierrors.NewForbidden(configMaps, "a", errors.New("exceeded quota: one, requested: count/configmaps=1")), errclass.Terminal, errclass.AccessDenied},
	{"403 of a quota that is not counted yet", apierrors.NewForbidden(configMaps, "a", errors.New("status unknown for quota: one, resources: count/configmaps")), errclass.Retryable, errclass.NotInEffect},
	{"403 of a webhook that speaks of a quota", status(403, metav1.StatusReasonForbidden, denied+": status unknown for quota: one"), errclass.Terminal, errclass.AccessDenied},
	{"401", apierrors.NewUnauthorized("token expired"), errclass.Retryable, errclass.ServerUnavailable},
	{"404 of the object", apierrors.NewNotFound(configMaps, "a"), errclass.Terminal, errclass.NotFound},
	{"404 of the namespace", apierrors.NewNotFound(namespaces, "shop"), errclass.Terminal, errclass.NamespaceNotFound},
	{"404 without details", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 404}}, errclass.Terminal, errclass.NotFound},

	{"400", apierrors.NewBadRequest("unknown field"), errclass.Terminal, errclass.Invalid},
	{"405", apierrors.NewMethodNotSupported(configMaps, "patch"), errclass.Terminal, errclass.Invalid},
	{"406", status(406, metav1.StatusReasonNotAcceptable, ""), errclass.Terminal, errclass.Invalid},
	{"415", status(415, metav1.StatusReasonUnsupportedMediaType, ""), errclass.Terminal, errclass.Invalid},
	{"422", apierrors.NewInvalid(widget, "a", field.ErrorList{field.Required(field.NewPath("spec"), "")}), errclass.Terminal, errclass.Invalid},
	{"413", apierrors.NewRequestEntityTooLargeError("limit is 3145728"), errclass.Terminal, errclass.TooLarge},
	{"429", apierrors.NewTooManyRequests("slow down", 3), errclass.Retryable, errclass.TooManyRequests},
	{"410", apierrors.NewResourceExpired("too old resource version"), errclass.Retryable, errclass.StaleVersion},

	{"500", apierrors.NewInternalError(errors.New("etcd is gone")), errclass.Unknown, errclass.ServerUnavailable},
	{"500 of a request too large for etcd", apierrors.NewInternalError(errors.New("etcdserver: request is too large")), errclass.Terminal, errclass.TooLarge},
	{"500 of a message too large for grpc", apierrors.NewInternalError(errors.New("rpc error: code = ResourceExhausted desc = trying to send message larger than max (2 vs. 1)")), errclass.Terminal, errclass.TooLarge},
	{"500 of an apply that does not fit its kind", apierrors.NewInternalError(errors.New("failed to create typed patch object (a/b; v1, Kind=Secret): .x: field not declared in schema")), errclass.Terminal, errclass.Invalid},
	{"500 of a resourceVersion on create", apierrors.NewInternalError(errors.New("resourceVersion should not be set on objects to be created")), errclass.Terminal, errclass.Invalid},
	{"502", status(502, "", "bad gateway"), errclass.Unknown, errclass.ServerUnavailable},
	{"503", apierrors.NewServiceUnavailable("starting"), errclass.Unknown, errclass.ServerUnavailable},
	{"503 with the text of a permanent 500", status(503, "", "request is too large"), errclass.Unknown, errclass.ServerUnavailable},
	{"504 of the server", apierrors.NewTimeoutError("timed out", 1), errclass.Unknown, errclass.ServerUnavailable},
	{"504 of a verb", apierrors.NewServerTimeout(configMaps, "create", 1), errclass.Unknown, errclass.ServerUnavailable},
	{"a code that means nothing", status(499, "", ""), errclass.Unknown, errclass.ServerUnavailable},
	{"a status without a code", status(0, "", ""), errclass.Unknown, errclass.ServerUnavailable},

	{"a deadline", context.DeadlineExceeded, errclass.Unknown, errclass.ServerUnavailable},
	{"a cancellation", context.Canceled, errclass.Unknown, errclass.ServerUnavailable},
	{"a reset connection", &url.Error{Op: "Post", URL: "https://x", Err: &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}}, errclass.Unknown, errclass.ServerUnavailable},
	{"a refused connection", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, errclass.Unknown, errclass.ServerUnavailable},
	{"an unknown host", &net.DNSError{Err: "no such host", Name: "x"}, errclass.Unknown, errclass.ServerUnavailable},
	{"an answer cut short", io.ErrUnexpectedEOF, errclass.Unknown, errclass.ServerUnavailable},
	{"500 of an object with a list of items", apierrors.NewInternalError(errors.New("*unstructured.Unstructured is not a list: no Items field in this object")), errclass.Unknown, errclass.Invalid},
	{"an answer that is no list", errors.New("*unstructured.Unstructured is not a list: no Items field in this object"), errclass.Unknown, errclass.Invalid},
	{"an answer that does not fit", &json.UnmarshalTypeError{Value: "string", Type: reflect.TypeFor[map[string]any]()}, errclass.Unknown, errclass.Invalid},
	{"an error nobody thought of", errors.New("request is too large"), errclass.Unknown, errclass.ServerUnavailable},
}

func TestClassify(t *testing.T) {
	wrappings := map[string]func(error) error{
		"bare":    func(err error) error { return err },
		"wrapped": func(err error) error { return fmt.Errorf("a: %w", fmt.Errorf("b: %w", err)) },
		"joined":  func(err error) error { return errors.Join(errors.New("first"), err) },
		"as ours": func(err error) error { return errclass.Wrap(err, "get", "ConfigMap shop/a", false) },
		"secret":  func(err error) error { return errclass.Wrap(err, "get", "Secret shop/a", true) },
		"twice":   func(err error) error { return errclass.Wrap(errclass.Wrap(err, "get", "a", true), "put", "b", false) },
	}
	for _, c := range classified {
		for how, wrap := range wrappings {
			t.Run(c.name+" "+how, func(t *testing.T) {
				err := wrap(c.err)
				class, reason := errclass.Classify(err)
				if class != c.class || reason != c.reason {
					t.Errorf("%s %s, want %s %s", class, reason, c.class, c.reason)
				}
				if errclass.ClassOf(err) != class || errclass.ReasonOf(err) != reason || !errclass.Is(err, reason) {
					t.Error("ClassOf, ReasonOf and Is do not agree with Classify")
				}
			})
		}
	}
}

func TestNothingIsNoError(t *testing.T) {
	if errclass.Is(nil, errclass.ReasonOf(nil)) {
		t.Error("no error has a reason")
	}
	if err := errclass.Wrap(nil, "get", "a", true); err != nil {
		t.Errorf("wrapped nothing is %v", err)
	}
	if got := errclass.Message(nil); got != "" {
		t.Errorf("its message is %q", got)
	}
}

func TestZeroClassIsUnknown(t *testing.T) {
	var class errclass.Class
	if class != errclass.Unknown || (&errclass.Error{}).Class != errclass.Unknown {
		t.Errorf("it is %s", class)
	}
}

func TestClassesHaveNames(t *testing.T) {
	for class, want := range map[errclass.Class]string{
		errclass.Unknown: "unknown", errclass.Terminal: "terminal", errclass.Conflict: "conflict", errclass.Retryable: "retryable", errclass.Class(77): "unknown",
	} {
		if got := class.String(); got != want {
			t.Errorf("%d is %q, want %q", class, got, want)
		}
	}
}

func TestRetryAfterIsWhatTheServerAsked(t *testing.T) {
	asked := apierrors.NewTooManyRequests("slow down", 7)
	for name, err := range map[string]error{
		"wrapped":       errclass.Wrap(asked, "get", "a", false),
		"sensitive":     errclass.Wrap(asked, "get", "a", true),
		"wrapped below": fmt.Errorf("x: %w", errclass.Wrap(fmt.Errorf("y: %w", asked), "get", "a", false)),
	} {
		if got := errclass.RetryAfter(err); got != 7*time.Second {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, err := range map[string]error{
		"nothing": nil, "a stranger": io.EOF, "not asked": errclass.Wrap(apierrors.NewNotFound(configMaps, "a"), "get", "a", false),
	} {
		if got := errclass.RetryAfter(err); got != 0 {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestStatusIsTheServersAnswer(t *testing.T) {
	err := errclass.Wrap(apierrors.NewNotFound(configMaps, "a"), "get", "a", false)
	if s, ok := errclass.Status(err); !ok || s.Code != http.StatusNotFound {
		t.Errorf("got %v, %t", s, ok)
	}
	if _, ok := errclass.Status(io.EOF); ok {
		t.Error("a stranger has a status")
	}
}
