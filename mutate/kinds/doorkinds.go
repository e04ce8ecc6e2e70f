package kinds

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
)

// grown: a claim is not made smaller.
func grown(before, after map[string]any) string {
	was, is := requested(before), requested(after)
	if is.Cmp(was) > 0 {
		return fmt.Sprintf("a claim that has grown from %s to %s cannot shrink", was.String(), is.String())
	}
	return ""
}

// requested is the storage that a claim asks for; zero for none.
func requested(claim map[string]any) resource.Quantity {
	text, _ := field(claim, "spec", "resources", "requests", "storage").(string)
	size, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}
	}
	return size
}

// begun: the template of a Job can change only while it is suspended.
func begun(before, after map[string]any) string {
	runs := field(before, "spec", "suspend") == true && field(after, "spec", "suspend") != true
	if runs && !reflect.DeepEqual(field(before, "spec", "template"), field(after, "spec", "template")) {
		return "the template of a Job that runs cannot be changed back"
	}
	return ""
}

// stored: objects may be stored in a version from then on, and it cannot be removed.
func stored(before, after map[string]any) string {
	version := storage(after)
	for _, v := range versions(before) {
		if v["name"] == version {
			return ""
		}
	}
	if version == "" {
		return ""
	}
	return fmt.Sprintf("version %s becomes the stored one, and cannot be removed from the definition again (status.storedVersions)", version)
}

// storage is the version that objects of a CustomResourceDefinition are stored in.
func storage(definition map[string]any) string {
	for _, v := range versions(definition) {
		if v["storage"] == true {
			name, _ := v["name"].(string)
			return name
		}
	}
	return ""
}

func versions(definition map[string]any) []map[string]any {
	list, _ := field(definition, "spec", "versions").([]any)
	var out []map[string]any
	for _, v := range list {
		if version, ok := v.(map[string]any); ok {
			out = append(out, version)
		}
	}
	return out
}
