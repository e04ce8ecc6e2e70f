// Package docs runs the commands of pages of the documentation, and compares what they print
// with what the pages show.
package docs

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
