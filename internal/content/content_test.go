package content

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func packed(t testing.TB, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestOneObjectIsReadFromWhateverHoldsIt(t *testing.T) {
	want := map[string]any{"kind": "ConfigMap", "data": map[string]any{"number": int64(9007199254740993), "none": nil}}
	for name, text := range map[string]string{
		"JSON":                      `{"kind": "ConfigMap", "data": {"number": 9007199254740993, "none": null}}`,
		"YAML":                      "kind: ConfigMap\ndata:\n  number: 9007199254740993\n  none: null\n",
		"YAML in flow style":        "{kind: ConfigMap, data: {number: 9007199254740993, none: }}",
		"YAML with separators":      "---\n# The first document.\n---\nkind: ConfigMap\ndata: {number: 9007199254740993, none: null}\n---\n",
		"YAML with an end":          "kind: ConfigMap\ndata: {number: 9007199254740993, none: null}\n...\n# The end.\n",
		"JSON with space around it": "\n\t {\"kind\": \"ConfigMap\", \"data\": {\"number\": 9007199254740993, \"none\": null}}\n",
		"YAML with an anchor in it": "kind: &k ConfigMap\ndata: {number: 9007199254740993, none: null}\n",
	} {
		for how, data := range map[string][]byte{"plain": []byte(text), "gzip": packed(t, []byte(text))} {
			got, err := Decode(data)
			require.NoError(t, err, "%s, %s", name, how)
			assert.Equal(t, want, got, "%s, %s", name, how)
		}
	}
}

func TestWhatIsNotOneObjectIsRefused(t *testing.T) {
	whole := packed(t, []byte(`{"kind": "ConfigMap"}`))
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-5] ^= 1 // in the checksum
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"nothing":            {nil, errEmpty},
		"space":              {[]byte(" \n"), errEmpty},
		"comments":           {[]byte("# nothing\n"), errEmpty},
		"a number":           {[]byte("7"), errNotObject},
		"a list":             {[]byte("- a\n- b\n"), errNotObject},
		"a list of JSON":     {[]byte(`[{"kind": "ConfigMap"}]`), errNotObject},
		"text":               {[]byte("hunter2"), errNotObject},
		"broken YAML":        {[]byte("a: b: c"), errNotObject},
		"JSON, then more":    {[]byte(`{"kind": "ConfigMap"} {"kind": "Secret"}`), errSeveral},
		"two documents":      {[]byte("kind: ConfigMap\n---\nkind: Secret\n"), errSeveral},
		"an ended document":  {[]byte("kind: ConfigMap\n...\nkind: Secret\n"), errSeveral},
		"flow style twice":   {[]byte("{kind: ConfigMap} {kind: Secret}"), errSeveral},
		"a field twice":      {[]byte(`{"kind": "ConfigMap", "kind": "Secret"}`), errDuplicate},
		"a field twice, too": {[]byte("kind: ConfigMap\nkind: Secret\n"), errNotObject},
		"a truncated gzip":   {whole[:len(whole)-9], errTruncated},
		"a damaged gzip":     {damaged, errTruncated},
		"a gzip's beginning": {whole[:4], errTruncated},
		"zip":                {[]byte("PK\x03\x04"), errNotObject},
		"large, as it is":    {[]byte(`{"a": "` + strings.Repeat("a", MaxBytes) + `"}`), errTooLarge},
		"large, unpacked":    {packed(t, []byte(`{"a": "`+strings.Repeat("a", MaxBytes)+`"}`)), errTooLarge},
	} {
		got, err := Decode(c.data)
		require.ErrorIs(t, err, c.want, name)
		assert.Nil(t, got, name)
	}
}

// Each of these takes gigabytes if it is unpacked to the end.
func TestABombIsRefusedAndTakesLittleMemory(t *testing.T) {
	zeros := packed(t, make([]byte, 200<<20))
	var aliases strings.Builder
	aliases.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&aliases, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	for name, data := range map[string][]byte{
		"gzip": zeros, "aliases": []byte(aliases.String()), "packed aliases": packed(t, []byte(aliases.String())),
		"deep JSON": []byte(strings.Repeat(`{"a":`, 200_000)), "deep YAML": []byte(strings.Repeat(`{a: `, 200_000)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(data)
		runtime.ReadMemStats(&after)
		require.Error(t, err, name)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20), name)
	}
}

func TestADigestWithAKeyTellsNothingWithoutIt(t *testing.T) {
	assert.Equal(t, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", Digest([]byte("abc")))
	one, other := KeyedDigest("u1", []byte("abc")), KeyedDigest("u2", []byte("abc"))
	assert.NotEqual(t, one, other)
	assert.NotEqual(t, one, KeyedDigest("u1", []byte("abd")))
	assert.Equal(t, one, KeyedDigest("u1", []byte("abc")))
	assert.LessOrEqual(t, len(one), 80)
}

func FuzzDecode(f *testing.F) {
	for _, seed := range [][]byte{
		[]byte(`{"a": 1}`), []byte("a: 1\n---\nb: 2\n"), packed(f, []byte("a: [1, 2]")), []byte("a: &x 1\nb: *x"), {0x1f, 0x8b, 8},
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Decode(data)
		assert.Equal(t, err == nil, got != nil)
	})
}
