package main

import (
	"strings"
	"testing"
)

func TestASessionIsDrawnLineByLine(t *testing.T) {
	var out strings.Builder
	if err := draw(strings.NewReader("$ run <this>\nA   RolledBack\n"+strings.Repeat("long ", 40)+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"run\u00a0&lt;this&gt;", "A\u00a0\u00a0\u00a0<tspan fill=\"#ffa657\">RolledBack</tspan>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "<text "); n != 4 {
		t.Errorf("got %d lines, want 4: one is too long", n)
	}
}
