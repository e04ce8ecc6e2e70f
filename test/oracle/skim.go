package oracle

import "encoding/json"

// skimmed is what tells, of a body or an answer, which object it is about. The rest
// of it is not decoded: that is most of what a run has sent, and tells nothing more.
type skimmed struct {
	kind, name      string
	uid, version    string
	preUID, preVers string // of the preconditions of a deletion
	deleting        bool   // has a deletionTimestamp
	finalizers      bool   // says something about finalizers
}

// skim reads an object, or a JSON patch. What is neither gives nothing.
func skim(content []byte) (s skimmed) {
	content = plain(content)
	start := space(content, 0)
	if start == len(content) {
		return s
	}
	if content[start] == '[' {
		return skimPatch(content)
	}
	fields(content, start, func(name, value []byte) {
		switch string(name) {
		case "kind":
			s.kind = text(value)
		case "metadata":
			fields(value, 0, s.meta)
		case "details":
			fields(value, 0, func(name, value []byte) {
				if string(name) == "uid" {
					s.uid = text(value)
				}
			})
		case "preconditions":
			fields(value, 0, func(name, value []byte) {
				switch string(name) {
				case "uid":
					s.preUID = text(value)
				case "resourceVersion":
					s.preVers = text(value)
				}
			})
		}
	})
	return s
}

func (s *skimmed) meta(name, value []byte) {
	switch string(name) {
	case "name":
		s.name = text(value)
	case "uid":
		s.uid = text(value)
	case "resourceVersion":
		s.version = text(value)
	case "deletionTimestamp":
		s.deleting = string(value) != "null"
	case "finalizers":
		s.finalizers = true
	}
}

// skimPatch reads the operations of a JSON patch that say which object is meant.
func skimPatch(content []byte) (s skimmed) {
	var operations []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if json.Unmarshal(content, &operations) != nil {
		return s
	}
	for _, o := range operations {
		switch o.Path {
		case "/metadata/uid":
			s.uid = text(o.Value)
		case "/metadata/resourceVersion":
			s.version = text(o.Value)
		case "/metadata/finalizers":
			s.finalizers = true
		}
	}
	return s
}

// fields calls each for every field of the object that begins at a place. The
// content is well-formed: it comes from an encoder, or was accepted by a server.
func fields(content []byte, at int, each func(name, value []byte)) {
	if at >= len(content) || content[at] != '{' {
		return
	}
	for at++; ; {
		at = space(content, at)
		if at < len(content) && content[at] == ',' {
			at = space(content, at+1)
		}
		if at >= len(content) || content[at] != '"' {
			return
		}
		end := skip(content, at)
		name := content[at+1 : max(at+1, end-1)]
		at = space(content, end)
		if at >= len(content) || content[at] != ':' {
			return
		}
		at = space(content, at+1)
		end = skip(content, at)
		each(name, content[at:end])
		at = end
	}
}

// skip returns the place after the value that begins at a place.
func skip(content []byte, at int) int {
	depth := 0
	for at < len(content) {
		switch content[at] {
		case '"':
			at = endOfText(content, at+1)
			if depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth < 0 {
				return at
			}
			if depth == 0 {
				return at + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return at
			}
		}
		at++
	}
	return len(content)
}

// endOfText is the place after the quotation mark that ends a text.
func endOfText(content []byte, at int) int {
	for at < len(content) {
		switch content[at] {
		case '"':
			return at + 1
		case '\\':
			at++
		}
		at++
	}
	return len(content)
}

func space(content []byte, at int) int {
	for at < len(content) && (content[at] == ' ' || content[at] == '\n' || content[at] == '\t' || content[at] == '\r') {
		at++
	}
	return at
}

// text is a JSON text without its quotation marks; what it is about needs no
// escapes.
func text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	return string(value[1 : len(value)-1])
}
