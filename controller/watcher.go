package controller

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
)

// NewWatcher makes the client by which a Controller watches Transactions. config is one
// without a request timeout.
func NewWatcher(config *rest.Config) (cache.Getter, error) {
	known := knowing(&decoded{}, &decodedList{})
	return clientFor(config, &codecs{serializer.NewCodecFactory(known).WithoutConversion(), known})
}

// knowing is a scheme in which Transactions and lists of them have these types.
func knowing(one, list runtime.Object) *runtime.Scheme {
	known := runtime.NewScheme()
	known.AddKnownTypeWithName(api.Kind, one)
	known.AddKnownTypeWithName(api.GroupVersion.WithKind(api.Kind.Kind+"List"), list)
	metav1.AddToGroupVersion(known, api.GroupVersion)
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	return known
}

func clientFor(config *rest.Config, by runtime.NegotiatedSerializer) (cache.Getter, error) {
	own := rest.CopyConfig(config)
	own.APIPath, own.GroupVersion, own.NegotiatedSerializer = "/apis", ptr.To(api.GroupVersion), by
	client, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("make a client that watches Transactions: %w", err)
	}
	return client, nil
}

// codecs decode what the watch gets. Those of client-go look for the kind in all of an
// object, and of an event, before they decode it.
type codecs struct {
	runtime.NegotiatedSerializer
	known *runtime.Scheme
}

func (c *codecs) SupportedMediaTypes() []runtime.SerializerInfo {
	return []runtime.SerializerInfo{{
		MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
		Serializer: json.NewSerializerWithOptions(firstFields{}, c.known, c.known, json.SerializerOptions{}),
		StreamSerializer: &runtime.StreamSerializerInfo{
			EncodesAsText: true, Framer: json.Framer,
			Serializer: json.NewSerializerWithOptions(anEvent{}, c.known, c.known, json.SerializerOptions{}),
		},
	}}
}

// anEvent finds nothing out: an event has no kind, and it is known that it is one.
type anEvent struct{}

func (anEvent) Interpret([]byte) (*schema.GroupVersionKind, error) {
	return &schema.GroupVersionKind{}, nil
}

// firstFields finds out what an object is by the fields that come first, and reads on only
// until it has found them.
type firstFields struct{}

func (firstFields) Interpret(data []byte) (*schema.GroupVersionKind, error) {
	var is metav1.TypeMeta
	fields := map[string]*string{"apiVersion": &is.APIVersion, "kind": &is.Kind}
	d := stdjson.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil { // the brace
		return nil, fmt.Errorf("find out the kind of an object: %w", err)
	}
	for len(fields) > 0 && d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("find out the kind of an object: %w", err)
		}
		key, _ := name.(string)
		var value any = &stdjson.RawMessage{}
		if field, ok := fields[key]; ok {
			value = field
			delete(fields, key)
		}
		if err := d.Decode(value); err != nil {
			return nil, fmt.Errorf("find out the kind of an object: %w", err)
		}
	}
	return ptr.To(is.GroupVersionKind()), nil
}
