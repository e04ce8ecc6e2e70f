package content

import "bytes"

// MaxValues is how many values one content may have. Decoded, a value takes a hundred bytes
// however short it is, and as many as fit into MaxBytes take hundreds of times that.
// Definitions of kinds have a tenth of it.
const MaxValues = 300_000

// decoded is about how many bytes a value takes, decoded. Of small objects, it is twice that.
const decoded = 64

// Values is how many values a document of YAML has at most: each begins after one of these.
// Those in texts are counted too.
func Values(text []byte) int {
	n := 1
	for _, mark := range []string{"\n", ",", "[", "{", ":", "- ", "-\t", "? ", "?\t"} {
		n += bytes.Count(text, []byte(mark))
	}
	return n
}

// valuesOfJSON is the same for JSON, where texts can be told from the rest.
func valuesOfJSON(text []byte) int {
	n, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && (c == ',' || c == '[' || c == '{' || c == ':'):
			n++
		}
	}
	return n
}

// Weight is about how many bytes a content takes once it is decoded.
func Weight(data []byte) int64 {
	plain, err := Unpack(data)
	if err != nil {
		return int64(len(data)) // It will not be decoded.
	}
	values := Values
	if bytes.HasPrefix(bytes.TrimSpace(plain), []byte("{")) {
		values = valuesOfJSON
	}
	return int64(len(plain)) + decoded*int64(min(values(plain), MaxValues))
}
