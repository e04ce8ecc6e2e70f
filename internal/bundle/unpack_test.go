package bundle

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// block is a header of a tar archive, as far as a reader looks.
func block(name string, kind byte, size int) []byte {
	b := make([]byte, 512)
	copy(b, name)
	copy(b[100:], fmt.Sprintf("%07o\x00%07o\x00%07o\x00%011o\x00%011o\x00        %c", 0o644, 0, 0, size, 0, kind))
	copy(b[257:], "ustar\x0000")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// padded fills up to whole blocks.
func padded(text string) []byte {
	return append([]byte(text), make([]byte, (512-len(text)%512)%512)...)
}

// sparse is an archive of three blocks with a file that is so large.
func sparse(size int64) []byte {
	var records strings.Builder
	for _, record := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=one.yaml", fmt.Sprintf("GNU.sparse.realsize=%d", size)} {
		length := len(record) + 4
		_, _ = fmt.Fprintf(&records, "%d %s\n", length, record)
	}
	layout := fmt.Sprintf("1\n%d\n0\n", size)
	out := append(block("pax", 'x', records.Len()), padded(records.String())...)
	out = append(out, block("GNUSparseFile.0/one.yaml", '0', 512)...)
	out = append(out, padded(layout)...)
	return append(out, make([]byte, 1024)...)
}

func TestAnArtifactTakesNoMoreThanItsLimit(t *testing.T) {
	half := "one.yaml:" + strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		layers [][]byte
		says   error
	}{
		"an archive counts as its files":   {[][]byte{packed(t, archive(t, half))}, nil},
		"archives count together":          {[][]byte{packed(t, archive(t, half)), packed(t, archive(t, half))}, errTooLarge},
		"an archive that is too large":     {[][]byte{packed(t, archive(t, half, "README:"+strings.Repeat("x", 5000)))}, errTooLarge},
		"a file with a hole":               {[][]byte{sparse(1000)}, nil},
		"a file with a hole of a terabyte": {[][]byte{sparse(1 << 40)}, errTooLarge},
		"one in an archive in gzip":        {[][]byte{packed(t, sparse(1<<40))}, errTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unpacking{limit: 9000}
			var err error
			for _, layer := range c.layers {
				err = errors.Join(err, u.add("", layer))
			}
			if c.says != nil {
				require.ErrorIs(t, err, c.says)
				return
			}
			require.NoError(t, err)
			assert.Len(t, u.files, 1)
		})
	}
}

func TestAnArtifactHasNoMoreFilesThanItMay(t *testing.T) {
	var files []string
	for i := range maxFiles + 1 {
		files = append(files, fmt.Sprintf("%d.yaml:", i))
	}
	u := &unpacking{limit: maxBytes}
	require.ErrorIs(t, u.add("", archive(t, files...)), errTooMany)
}

// FuzzLayer: whatever a layer is, no more is kept of it than may be, and the names of its files
// lead nowhere and can be shown.
func FuzzLayer(f *testing.F) {
	t := &testing.T{}
	for _, name := range []string{"one.yaml", "../../etc/one.yaml", "/etc/one.yml", "a/./b//c/..json", "._one.yaml", "\x1b[2J.yaml", "\xff.yaml", `..\..\one.yaml`, "kustomization.yaml"} {
		layer := archive(t, name+":kind: A\n")
		f.Add(name, []byte("kind: A\n"))
		f.Add("", layer)
		f.Add("", packed(t, layer))
		f.Add("", packed(t, packed(t, layer)))
		f.Add("", layer[:len(layer)/2])
	}
	f.Add("one.yaml.gz", packed(t, make([]byte, 1<<20)))
	f.Add("", sparse(1000))
	f.Add("", sparse(1<<40))
	f.Fuzz(func(t *testing.T, title string, data []byte) {
		const limit = 1 << 16
		u := &unpacking{limit: limit}
		if err := u.add(title, data); err != nil {
			return
		}
		kept := 0
		for _, file := range u.files {
			kept += len(file.Data)
			if !isManifest(file.Path) || file.Path != strings.TrimPrefix(path.Clean("/"+file.Path), "/") ||
				strings.ContainsFunc(file.Path, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("the name %q", file.Path)
			}
		}
		if kept > max(limit, len(data)) {
			t.Errorf("%d bytes are kept of %d", kept, len(data))
		}
	})
}
