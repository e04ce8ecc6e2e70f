package main

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

func TestGoKeepsWithinTheContainerUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	container := fstest.MapFS{
		"proc/self/cgroup":         {Data: []byte("0::/\n")},
		"sys/fs/cgroup/memory.max": {Data: []byte("536870912\n")},
	}
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "100MiB")
	saveMemory(container)
	assert.Equal(t, "none", memoryLimit(), "Go itself has read the environment")
	t.Setenv("GOMEMLIMIT", "")
	saveMemory(fstest.MapFS{})
	assert.Equal(t, "none", memoryLimit())
	saveMemory(container)
	assert.Equal(t, "460Mi", memoryLimit())
	assert.Equal(t, gcPercent, debug.SetGCPercent(100))
}

func TestTheLimitOfTheContainerIsFound(t *testing.T) {
	const mi = 1 << 20
	for name, tt := range map[string]struct {
		own   string
		files map[string]string
		want  int64
	}{
		"a container":                 {"0::/\n", map[string]string{"memory.max": "536870912\n"}, 512 * mi},
		"a container without a limit": {"0::/\n", map[string]string{"memory.max": "max\n"}, math.MaxInt64},
		"a container that knows its path on the node": {
			"0::/kubepods.slice/pod1/c1\n", map[string]string{"memory.max": "536870912\n"}, 512 * mi,
		},
		"a process of a Node, whose slice has less than it": {
			"0::/system.slice/janusd.service\n",
			map[string]string{"system.slice/janusd.service/memory.max": "max\n", "system.slice/memory.max": "1073741824\n"}, 1024 * mi,
		},
		"version 1 of cgroups": {
			"12:cpu,cpuacct:/kubepods/pod1/c1\n5:hugetlb,memory:/kubepods/pod1/c1\n0::/\n",
			map[string]string{"memory/memory.limit_in_bytes": "536870912\n"}, 512 * mi,
		},
		"version 1 without a limit": {
			"4:memory:/\n", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, math.MaxInt64,
		},
		"a path outside of what is mounted": {"0::/../other\n", map[string]string{"memory.max": "536870912\n"}, 512 * mi},
		"nothing that can be read":          {"what\n0:\n4:memory:/x\n", map[string]string{"memory/x/memory.limit_in_bytes": "-1\n"}, math.MaxInt64},
		"no cgroups":                        {"", nil, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			if tt.own != "" {
				root["proc/self/cgroup"] = &fstest.MapFile{Data: []byte(tt.own)}
			}
			for file, text := range tt.files {
				root["sys/fs/cgroup/"+file] = &fstest.MapFile{Data: []byte(text)}
			}
			assert.Equal(t, tt.want, containerLimit(root))
		})
	}
}
