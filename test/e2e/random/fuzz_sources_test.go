package random

import (
	"encoding/base64"
	"fmt"
	"strings"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"janus.io/janus/internal/content"
)

// spoilt are the ways in which what a source holds is no content.
var spoilt = map[string]func([]byte) []byte{
	"empty":     func([]byte) []byte { return nil },
	"a comment": func([]byte) []byte { return []byte("# nothing\n") },
	"text":      func([]byte) []byte { return []byte("hunter2") },
	"a list":    func(data []byte) []byte { return []byte("[" + string(data) + "]") },
	"several":   func(data []byte) []byte { return []byte(string(data) + "\n---\n" + string(data)) },
	"cut":       func(data []byte) []byte { return data[:len(data)/2] },
	"cut gzip":  func(data []byte) []byte { whole := packed(data); return whole[:len(whole)-3] },
	"no gzip":   func(data []byte) []byte { return append([]byte{0x1f, 0x8b}, data...) },
	"a bomb":    func([]byte) []byte { return packed(make([]byte, 64<<20)) },
	"binary":    func([]byte) []byte { return []byte{0xff, 0xfe, 0x00, 0x01} },
	"a field twice": func([]byte) []byte {
		return []byte(`{"metadata":{},"metadata":{}}`)
	},
}

// drawSources moves the contents of some changes into Secrets and ConfigMaps, in one of three
// cases. With odd, some are missing, spoilt or of another digest. It comes last, so that a case
// is the same but for that.
func (s *fuzzedSpec) drawSources(t *rapid.T, odd bool) {
	if rapid.IntRange(0, 2).Draw(t, "sources") > 0 {
		return
	}
	changes, _ := s.spec["changes"].([]any)
	held := map[string]map[string]any{}
	for i := range changes {
		change, _ := changes[i].(map[string]any)
		if change["content"] == nil || rapid.IntRange(0, 2).Draw(t, "inline") == 0 {
			continue
		}
		data := s.drawWritten(t, change["content"], odd)
		if len(data) > 300_000 {
			continue // Two of them would not fit.
		}
		kind := rapid.SampledFrom([]string{"ConfigMap", "Secret"}).Draw(t, "source")
		key, name := fmt.Sprint("item-", i), fmt.Sprint("source-", s.n)
		if held[kind] == nil {
			held[kind] = map[string]any{}
		}
		held[kind][key] = base64.StdEncoding.EncodeToString(data)
		digest := ""
		if rapid.Bool().Draw(t, "pinned") {
			digest = content.Digest(data)
		}
		if odd {
			switch rapid.IntRange(0, 11).Draw(t, "wrong") {
			case 0:
				name = fmt.Sprint("none-", s.n)
			case 1:
				key = "none"
			case 2:
				digest = "sha256:" + strings.Repeat("0", 64)
			case 3:
				name = fmt.Sprint("there-", s.n) // It may be a target.
			}
		}
		from := map[string]any{strings.ToLower(kind[:1]) + kind[1:] + "KeyRef": map[string]any{"name": name, "key": key}}
		if digest != "" {
			from["digest"] = digest
		}
		delete(change, "content")
		change["contentFrom"] = from
	}
	for kind, field := range map[string]string{"ConfigMap": "binaryData", "Secret": "data"} {
		if len(held[kind]) > 0 {
			s.sources = append(s.sources, encoded(map[string]any{
				"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": fmt.Sprint("source-", s.n)}, field: held[kind],
			}))
		}
	}
}

// drawWritten writes a content as a source may hold it.
func (s *fuzzedSpec) drawWritten(t *rapid.T, of any, odd bool) []byte {
	data := []byte(encoded(of))
	if odd && rapid.IntRange(0, 4).Draw(t, "spoilt") == 0 {
		return spoilt[rapid.SampledFrom(everyKey(spoilt, nil)).Draw(t, "how")](data)
	}
	switch rapid.SampledFrom([]string{"json", "yaml", "gzip"}).Draw(t, "form") {
	case "yaml":
		if text, err := yaml.JSONToYAML(data); err == nil {
			return text
		}
	case "gzip":
		return packed(data)
	}
	return data
}
