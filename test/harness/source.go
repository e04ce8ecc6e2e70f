package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// OverlayVariable is the environment variable with the path of the file that was given
// to go test -overlay, if there was one.
const OverlayVariable = "JANUS_TEST_OVERLAY"

// ReadSource reads a file of the repository that is not Go, such as a manifest. A
// defect may have been seeded into it: the overlay says what takes its place, as it
// does for Go.
func ReadSource(path string) ([]byte, error) {
	overlay := os.Getenv(OverlayVariable)
	if overlay == "" {
		return os.ReadFile(path)
	}
	content, err := os.ReadFile(overlay) //nolint:gosec // anyone who runs the test names it
	if err != nil {
		return nil, err
	}
	var files struct{ Replace map[string]string }
	if err := json.Unmarshal(content, &files); err != nil {
		return nil, fmt.Errorf("read the overlay %s: %w", overlay, err)
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if seeded, ok := files.Replace[whole]; ok {
		path = seeded
	}
	return os.ReadFile(path)
}
