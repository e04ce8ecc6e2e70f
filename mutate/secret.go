package mutate

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/target"
)

// storeStringData writes the stringData of a Secret as the data that the API server
// would make of it. It stores no stringData and yet makes the sender the owner of
// that, and not of the data: whose value a field has could then not be told, and a
// rollback would take the change for another client's. Content that is not text
// stays as it is, for the API server to refuse.
func (c Change) storeStringData(obj *unstructured.Unstructured) {
	if c.Ref.GVK.GroupKind() != target.SecretKind {
		return
	}
	text, ok := obj.Object["stringData"].(map[string]any)
	data, isMap := obj.Object["data"].(map[string]any)
	if !ok || !isMap && obj.Object["data"] != nil {
		return
	}
	stored := make(map[string]any, len(data)+len(text))
	for key, value := range data {
		stored[key] = value
	}
	for key, value := range text {
		plain, ok := value.(string)
		if !ok && value != nil { // The API server takes null for an empty text.
			return
		}
		stored[key] = base64.StdEncoding.EncodeToString([]byte(plain))
	}
	obj.Object["data"] = stored
	delete(obj.Object, "stringData")
}
