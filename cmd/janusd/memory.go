package main

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// gcPercent is how much of what is live may be allocated until the collector runs, in percent.
// Objects come and go by the megabyte, and what is live is little: most of a peak is garbage. With 50, a
// large Transaction takes a tenth more memory, and janusd an eighth less CPU.
const gcPercent = 30

// limitPercent is how much of what the container may take Go's memory is kept within, in percent: the
// collector works harder before the kernel kills janusd. The rest is for what Go does not count.
const limitPercent = 90

// saveMemory sets both, unless the environment does. root is the file system.
func saveMemory(root fs.FS) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if limit := containerLimit(root); limit < math.MaxInt64 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 100 * limitPercent)
	}
}

// memoryLimit is what the memory of Go is kept within.
func memoryLimit() string {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return "none"
	}
	return strconv.FormatInt(limit>>20, 10) + "Mi"
}

// noLimit and more is how the first version of cgroups writes that there is none.
const noLimit = math.MaxInt64 &^ 0xFFFF

// containerLimit is how many bytes the cgroup of this process may take, and those that it is in;
// math.MaxInt64 for any number. A container sees itself at the root of what is mounted, whatever its own
// path says.
func containerLimit(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return least // There are none, as on systems other than Linux.
	}
	for line := range strings.Lines(string(own)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		mounted, file := "sys/fs/cgroup", "memory.max"
		switch {
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			mounted, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case fields[1] != "":
			continue
		}
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			least = min(least, limitIn(root, path.Join(mounted, dir, file)))
			if dir == "/" {
				break
			}
		}
	}
	return least
}

// limitIn is the limit that a file has.
func limitIn(root fs.FS, file string) int64 {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return math.MaxInt64
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit <= 0 || limit >= noLimit { // "max" is no number.
		return math.MaxInt64
	}
	return limit
}
