// Package random runs random Transactions beside random writes of other clients (property), and
// Transactions of random input whose before-images, owners and locks are tampered with (fuzz).
// Each commits as a whole or not at all, ends, and names what is wrong. What these have found has a
// test by itself.
package random

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
