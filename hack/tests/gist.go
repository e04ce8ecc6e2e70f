package main

import (
	"regexp"
	"slices"
	"strings"
)

// most is how many lines are told of a test that has failed.
const most = 10

// told are the lines by which testing, testify and the runtime begin to say what is wrong.
var told = regexp.MustCompile(`^\s*(Error Trace:|panic: |fatal error: |WARNING: DATA RACE|\S+_test\.go:\d+: )`)

// noise is what tests print beside that: the logs of Janus and of client-go, and what the
// testing package says of each test.
var noise = regexp.MustCompile(`^\s*(logger\.go:\d+: |[EWI]\d{4} \d\d:|=== |--- (PASS|FAIL|SKIP))`)

// script is how testscript says which line of a script has failed, after what the commands
// before it have printed.
var script = regexp.MustCompile(`^\s*FAIL: \S+:\d+: `)

// message begins what testify was given to say of an assertion that has failed, after what was
// expected and what was seen.
var message = regexp.MustCompile(`^\s*Messages:`)

// gist returns the lines that say what was expected and what was seen: those from the first
// on that begins to, without the noise, and the message of the assertion, if that comes later.
// Of a script they are those that end there.
func gist(output []string) []string {
	var lines []string
	for _, line := range strings.Split(strings.Join(output, ""), "\n") {
		if strings.TrimSpace(line) != "" && !noise.MatchString(line) {
			lines = append(lines, strings.TrimRight(line, " \t"))
		}
	}
	if end := slices.IndexFunc(lines, script.MatchString); end >= 0 {
		return lines[max(0, end+1-most) : end+1]
	}
	if begin := slices.IndexFunc(lines, told.MatchString); begin >= 0 {
		lines = lines[begin:]
	}
	first, rest := lines[:min(most, len(lines))], lines[min(most, len(lines)):]
	if at := slices.IndexFunc(rest, message.MatchString); at >= 0 && !slices.ContainsFunc(first, message.MatchString) {
		first = slices.Concat(first, rest[at:min(at+most, len(rest))])
	}
	return first
}
