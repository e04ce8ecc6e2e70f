package supervisor

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// On a busy machine the API server takes seconds to compile the rules of a large definition, longer
// than a probe may take.
func TestADefinitionMayTakeLongToCreate(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(probeTimeout + 200*time.Millisecond)
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "crd.yaml"), []byte("kind: CustomResourceDefinition\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newAPIClient(nil).createCRDs(t.Context(), server.URL, dir); err != nil {
		t.Fatal(err)
	}
}
