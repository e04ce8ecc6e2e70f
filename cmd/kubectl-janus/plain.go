package main

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"janus.io/janus/internal/errclass"
)

// write prints text for people. What it says of objects may have been written by strangers,
// such as the holder of a Lease or the message of an event: escapes in it would have the
// terminal do or show what they like, and lines of their own would pass for ours. So each
// argument is made printable, on one line; the layout is that of the format alone.
func write(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, plain(args)...)
}

// several is text that has several lines by rights, such as a syntax error.
type several string

func plain(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case several:
			out[i] = plainLines(string(arg))
			continue
		case error, fmt.Stringer:
			out[i] = errclass.OneLine(fmt.Sprint(arg))
			continue
		}
		if v := reflect.ValueOf(arg); v.Kind() == reflect.String {
			out[i] = errclass.OneLine(v.String())
		} else {
			out[i] = arg
		}
	}
	return out
}

// plainLines makes text printable that may have several lines.
func plainLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = errclass.OneLine(strings.TrimRight(line, "\r"))
	}
	return strings.Join(lines, "\n")
}
