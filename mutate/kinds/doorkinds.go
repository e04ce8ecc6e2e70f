package kinds

import (
	"fmt"
	"reflect"
	"slices"

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

// Runs reports whether a Job that is to be suspended has not come to rest: until its controller has said
// so, nobody may change its template.
func Runs(job map[string]any) bool {
	active, _ := field(job, "status", "active").(int64)
	if active > 0 {
		return true
	}
	conditions, _ := field(job, "status", "conditions").([]any)
	return field(job, "status", "startTime") != nil && !slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Suspended" && condition["status"] == "True"
	})
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
