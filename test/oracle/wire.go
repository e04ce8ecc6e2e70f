package oracle

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// wire reads what typed clients send, and are answered.
var wire = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// plain is a body as JSON. Leases and before-images go in protobuf.
func plain(body []byte) []byte {
	if !bytes.HasPrefix(body, []byte("k8s\x00")) {
		return body
	}
	obj, kind, err := wire.Decode(body, nil, nil)
	if err != nil {
		return body
	}
	obj.GetObjectKind().SetGroupVersionKind(*kind)
	out, err := json.Marshal(obj)
	if err != nil {
		return body
	}
	return out
}
