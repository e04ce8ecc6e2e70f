// Package rollback shows that a rollback, and an undo, restore what was there and spare what is
// not Janus': in an order that the API server accepts, again after a refusal, with what
// admission, schemas and versions of a kind make of it, and with what controllers and other
// clients have made meanwhile.
package rollback

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
