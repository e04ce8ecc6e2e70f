package apisim

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// parsed reads a JSON object in one pass, where the library that servers use makes
// several. It reports failure for whatever is wrong or unusual: keys that repeat,
// fractions, escapes by number. Then the library is to be asked.
func parsed(data []byte) (content, bool) {
	if !utf8.Valid(data) {
		return nil, false
	}
	// The texts of the object are parts of this one.
	p := &parser{text: string(data)}
	p.space()
	if p.next() != '{' {
		return nil, false
	}
	obj, ok := p.object(0)
	p.space()
	return obj, ok && p.at == len(p.text)
}

// mostDeep is how deep an object may be that is read in this way.
const mostDeep = 200

// parser is somewhere in a text of JSON.
type parser struct {
	text string
	at   int
}

// next is the character at which the parser is, 0 at the end.
func (p *parser) next() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

// skip passes over a character, if it is there, and the space after it.
func (p *parser) skip(c byte) bool {
	if p.next() != c {
		return false
	}
	p.at++
	p.space()
	return true
}

func (p *parser) value(depth int) (any, bool) {
	switch c := p.next(); {
	case c == '"':
		return p.quoted()
	case c == '{':
		return p.object(depth + 1)
	case c == '[':
		return p.list(depth + 1)
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case p.word("true"):
		return true, true
	case p.word("false"):
		return false, true
	default:
		return nil, p.word("null")
	}
}

func (p *parser) word(word string) bool {
	if !strings.HasPrefix(p.text[p.at:], word) {
		return false
	}
	p.at += len(word)
	return true
}

func (p *parser) object(depth int) (content, bool) {
	out := content{}
	p.skip('{')
	if p.word("}") {
		return out, true
	}
	for n := 1; depth < mostDeep; n++ {
		key, ok := p.quoted()
		p.space()
		if !ok || !p.skip(':') {
			return nil, false
		}
		value, ok := p.value(depth)
		if !ok {
			return nil, false
		}
		if out[key] = value; len(out) < n {
			return nil, false // The key was there already.
		}
		p.space()
		if !p.skip(',') {
			return out, p.word("}")
		}
	}
	return nil, false
}

func (p *parser) list(depth int) ([]any, bool) {
	out := []any{}
	p.skip('[')
	if p.word("]") {
		return out, true
	}
	for depth < mostDeep {
		value, ok := p.value(depth)
		if !ok {
			return nil, false
		}
		out = append(out, value)
		p.space()
		if !p.skip(',') {
			return out, p.word("]")
		}
	}
	return nil, false
}

// number reads an integer that is surely an int64.
func (p *parser) number() (any, bool) {
	from := p.at
	if p.next() == '-' {
		p.at++
	}
	first := p.at
	for c := p.next(); c >= '0' && c <= '9'; c = p.next() {
		p.at++
	}
	digits := p.at - first
	if c := p.next(); digits == 0 || digits > 18 || c == '.' || c == 'e' || c == 'E' || p.text[first] == '0' && p.at-from > 1 {
		return nil, false
	}
	n, err := strconv.ParseInt(p.text[from:p.at], 10, 64)
	return n, err == nil
}

func (p *parser) quoted() (string, bool) {
	if p.next() != '"' {
		return "", false
	}
	p.at++
	for i := p.at; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '"':
			out := p.text[p.at:i]
			p.at = i + 1
			return out, true
		case c == '\\':
			return p.escaped()
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// escapes are the characters behind a backslash, and what they stand for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads the rest of a text that has backslashes.
func (p *parser) escaped() (string, bool) {
	var out strings.Builder
	for p.at < len(p.text) {
		plain := strings.IndexAny(p.text[p.at:], "\"\\")
		if plain < 0 || hasControl(p.text[p.at:p.at+plain]) {
			return "", false
		}
		out.WriteString(p.text[p.at : p.at+plain])
		p.at += plain + 1
		if p.text[p.at-1] == '"' {
			return out.String(), true
		}
		c := escapes[p.next()]
		if c == 0 {
			return "", false
		}
		out.WriteByte(c)
		p.at++
	}
	return "", false
}

func hasControl(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' {
			return true
		}
	}
	return false
}
