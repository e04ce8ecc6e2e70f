package main

import "testing"

func TestAParagraphBecomesOneLine(t *testing.T) {
	const wrapped = "a:\n  description: |-\n    one\n    two\n\n    three\n    four\n    - item\n      more\n  type: string\nb:\n  description: plain\n"
	const want = "a:\n  description: |-\n    one two\n\n    three four\n    - item\n      more\n  type: string\nb:\n  description: plain\n"
	if got := unwrap(wrapped); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := unwrap(want); got != want {
		t.Errorf("again: got %q, want %q", got, want)
	}
}
