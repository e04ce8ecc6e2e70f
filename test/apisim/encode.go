package apisim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// encode returns the JSON of an object, as encoding/json would, with sorted keys.
func encode(x any) []byte { return appendJSON(make([]byte, 0, 1024), x) }

func appendJSON(out []byte, x any) []byte {
	switch x := x.(type) {
	case nil:
		return append(out, "null"...)
	case string:
		return appendText(out, x)
	case bool:
		return strconv.AppendBool(out, x)
	case int64:
		return strconv.AppendInt(out, x, 10)
	case content:
		return appendMap(out, x)
	case []any:
		if x == nil {
			return append(out, "null"...)
		}
		out = append(out, '[')
		for i, v := range x {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendJSON(out, v)
		}
		return append(out, ']')
	default:
		return appendOther(out, x)
	}
}

func appendMap(out []byte, x content) []byte {
	if x == nil {
		return append(out, "null"...)
	}
	var some [16]string
	keys := some[:0]
	for k := range x {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out = append(out, '{')
	for i, k := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, k), ':')
		out = appendJSON(out, x[k])
	}
	return append(out, '}')
}

// appendText leaves what is not plain to encoding/json.
func appendText(out []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return appendOther(out, s)
		}
	}
	out = append(out, '"')
	out = append(out, s...)
	return append(out, '"')
}

func appendOther(out []byte, x any) []byte {
	data, err := json.Marshal(x)
	if err != nil {
		panic(fmt.Sprintf("an object cannot be encoded: %v", err))
	}
	return append(out, data...)
}
