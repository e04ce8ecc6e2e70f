package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestStagesCoverNodesAndPods(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"stages"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node-initialize", "node-heartbeat", "pod-ready", "pod-complete", "pod-delete"} {
		if strings.Count(out.String(), "\n  name: "+name+"\n") != 1 {
			t.Errorf("stage %s is not there once", name)
		}
	}
	if documents := strings.Count(out.String(), "\n---\n") + 1; documents != 5 {
		t.Errorf("%d documents, want 5", documents)
	}
}
