package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much of what is live may be allocated until the collector runs, in percent.
// Objects come and go by the megabyte, and what is live is little: with Go's 100, a large
// Transaction takes a quarter more memory.
const gcPercent = 50

// saveMemory sets it, unless the environment does.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
