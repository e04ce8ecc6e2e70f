package snapshot

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"janus.io/janus/fieldmerge"
)

func readObject(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSON(content)
	if err != nil {
		t.Fatal(err)
	}
	var obj unstructured.Unstructured
	if err := obj.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	return &obj
}

// goldenObjects runs do on every object in a directory of testdata.
func goldenObjects(t *testing.T, dir string, do func(*unstructured.Unstructured) *unstructured.Unstructured) {
	inputs, err := filepath.Glob(filepath.Join("testdata", dir, "*.in.yaml"))
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(filepath.Base(input), ".in.yaml")
		t.Run(name, func(t *testing.T) {
			obj := readObject(t, input)
			before := obj.DeepCopy()
			got, err := yaml.Marshal(do(obj).Object)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join(dir, name+".golden.yaml"), got)
			if !reflect.DeepEqual(obj, before) {
				t.Error("the argument was changed")
			}
		})
	}
}

func TestStripLeavesWhatAWriterDecides(t *testing.T) { goldenObjects(t, "strip", fieldmerge.Strip) }

func TestForCreateLeavesWhatTheServerTakes(t *testing.T) { goldenObjects(t, "recreate", ForCreate) }
