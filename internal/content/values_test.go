package content

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dense is an object of n small objects.
func dense(n int) []byte {
	return []byte(`{"x":[` + strings.TrimSuffix(strings.Repeat(`{"":0},`, n), ",") + `]}`)
}

func TestAContentOfTooManyValuesIsRefused(t *testing.T) {
	for name, plain := range map[string][]byte{
		"JSON":           dense(MaxBytes / 8),
		"YAML":           []byte("x: [" + strings.Repeat("{y: 0}, ", MaxBytes/9) + "]"),
		"YAML of lines":  []byte("x:\n" + strings.Repeat("- 0\n", MaxBytes/5)),
		"YAML of blocks": []byte("x:\n" + strings.Repeat("-\n - 0\n", MaxBytes/9)),
	} {
		t.Run(name, func(t *testing.T) {
			packed, err := compress(Content{Data: plain})
			require.NoError(t, err)
			for _, data := range [][]byte{plain, packed} {
				_, err := Decode(data)
				require.ErrorContains(t, err, fmt.Sprintf("more than %d ", MaxValues))
			}
		})
	}
}

// What is in texts is no value.
func TestALongTextIsOneValue(t *testing.T) {
	text := strings.Repeat(`1,2:{[\"\\`, 1<<17)
	object, err := Decode([]byte(`{"data":{"table":"` + text + `"}}`))
	require.NoError(t, err)
	require.Len(t, object["data"].(map[string]any)["table"], 8<<17)
}

// What a content takes is at most a small multiple of its Weight.
func TestWhatADecodedContentTakes(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) //nolint:gosec // no heap has 8 EiB
	}
	data := dense(MaxValues/3 - 1)
	before := heap()
	object, err := Decode(data)
	require.NoError(t, err)
	taken := heap() - before
	require.Less(t, taken, 3*Weight(data))
	runtime.KeepAlive(object)
}
