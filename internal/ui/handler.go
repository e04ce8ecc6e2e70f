package ui

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	api "janus.io/janus/api/v1alpha1"
)

//go:embed page
var embedded embed.FS

// Reader reads what the page shows. Its errors may be those of the API server.
type Reader interface {
	// Transactions lists those that are shown.
	Transactions(ctx context.Context) ([]*api.Transaction, error)
	// Follow lists them, and sends *api.Transaction for all that changes from then on.
	Follow(ctx context.Context) (found []*api.Transaction, changes watch.Interface, err error)
	// Transaction reads one of those that are shown.
	Transaction(ctx context.Context, namespace, name string) (*api.Transaction, error)
	// Leases lists the Leases of a namespace.
	Leases(ctx context.Context, namespace string) ([]coordinationv1.Lease, error)
	// Events lists the events about a Transaction.
	Events(ctx context.Context, t *api.Transaction) ([]corev1.Event, error)
}

// Options says how the page is served.
type Options struct {
	// Heartbeat is how often a stream that has nothing to say says so, for a connection
	// that is broken to be noticed. The default is 15 seconds.
	Heartbeat time.Duration
	// LeaseOf names the Lease that locks an object, as namespace/name: one that waits for a
	// lock does not name it. Without it, locks that no Transaction holds are not found.
	LeaseOf func(target api.Target, resource string) string
	// History and Past are left out where nobody may see what they read.
	History History
	Past    Past
}

type handler struct {
	reader  Reader
	options Options
}

// Handler serves the page and what it asks for.
func Handler(reader Reader, o Options) (http.Handler, error) {
	h := &handler{reader: reader, options: o}
	if h.options.Heartbeat <= 0 {
		h.options.Heartbeat = 15 * time.Second
	}
	files, err := fs.Sub(embedded, "page")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(files))
	mux.HandleFunc("/api/transactions", h.list)
	mux.HandleFunc("/api/transactions/{namespace}/{name}", h.one)
	mux.HandleFunc("/api/transactions/{namespace}/{name}/differences", h.differences)
	mux.HandleFunc("/api/stream", h.stream)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "there is no such thing")
	})
	return readOnly(mux), nil
}

// policy lets the page load what is served beside it, and nothing else; nobody may frame it.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// readOnly refuses every method that could be meant to change something.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-store")
		// A browser that has been let in is let in for the pages of others, too: they are
		// not to load anything from here.
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "this page only reads")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	found, err := h.reader.Transactions(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	namespace, phase := r.FormValue("namespace"), r.FormValue("phase")
	out := []Summary{}
	for _, t := range found {
		if s := summaryOf(t); (namespace == "" || s.Namespace == namespace) && (phase == "" || s.Phase == phase) {
			out = append(out, s)
		}
	}
	answer(w, out)
}

func (h *handler) one(w http.ResponseWriter, r *http.Request) {
	t, err := h.reader.Transaction(r.Context(), r.PathValue("namespace"), r.PathValue("name"))
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, h.detail(r.Context(), t))
}

func answer(w http.ResponseWriter, content any) {
	w.Header().Set("Content-Type", "application/json")
	// That a reader is gone is no error, and nobody is left to be told.
	_ = json.NewEncoder(w).Encode(content)
}

func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why})
}

// fail passes on what the API server has answered; what else goes wrong lies beyond here.
func fail(w http.ResponseWriter, err error) {
	code := http.StatusBadGateway
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Status == metav1.StatusFailure && status.Status().Code >= 400 {
		code = int(status.Status().Code)
	}
	refuse(w, code, err.Error())
}
