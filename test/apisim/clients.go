package apisim

import (
	"fmt"
	"io"
	"net/http"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// NewDynamic makes the dynamic client of client-go, which sends and is told the same
// bytes, but reads and writes plain objects by a codec that takes a fraction of the
// time.
func NewDynamic(config *rest.Config) (dynamic.Interface, error) {
	config = dynamic.ConfigFor(config)
	config.NegotiatedSerializer = quickCodecs{config.NegotiatedSerializer}
	config.GroupVersion, config.APIPath = nil, "/unused"
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a dynamic client: %w", err)
	}
	return dynamic.New(client), nil
}

// NewKube makes the typed clients of client-go for the core group, for apps and for
// Leases, with such a codec. Other groups it does not have.
func NewKube(config *rest.Config) (kubernetes.Interface, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a transport: %w", err)
	}
	core, err := restClient(config, corev1.SchemeGroupVersion, "/api", client)
	if err != nil {
		return nil, err
	}
	coordination, err := restClient(config, coordinationv1.SchemeGroupVersion, "/apis", client)
	if err != nil {
		return nil, err
	}
	apps, err := restClient(config, appsv1.SchemeGroupVersion, "/apis", client)
	if err != nil {
		return nil, err
	}
	return kube{apps: appsv1client.New(apps), core: corev1client.New(core), coordination: coordinationv1client.New(coordination)}, nil
}

// kube is a part of the typed clients.
type kube struct {
	kubernetes.Interface
	apps         appsv1client.AppsV1Interface
	core         corev1client.CoreV1Interface
	coordination coordinationv1client.CoordinationV1Interface
}

// CoreV1 implements kubernetes.Interface.
func (k kube) CoreV1() corev1client.CoreV1Interface { return k.core }

// AppsV1 implements kubernetes.Interface.
func (k kube) AppsV1() appsv1client.AppsV1Interface { return k.apps }

// CoordinationV1 implements kubernetes.Interface.
func (k kube) CoordinationV1() coordinationv1client.CoordinationV1Interface { return k.coordination }

func restClient(config *rest.Config, gv schema.GroupVersion, path string, client *http.Client) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &gv, path
	config.NegotiatedSerializer = quickCodecs{rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion()}
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	out, err := rest.RESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", gv, err)
	}
	return out, nil
}

// quickCodecs are the codecs of a client, with a quick one for JSON.
type quickCodecs struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c quickCodecs) SupportedMediaTypes() []runtime.SerializerInfo {
	all := c.NegotiatedSerializer.SupportedMediaTypes()
	out := make([]runtime.SerializerInfo, len(all))
	for i, info := range all {
		if info.MediaType == runtime.ContentTypeJSON {
			info.Serializer = quickCodec{info.Serializer}
		}
		out[i] = info
	}
	return out
}

// quickCodec reads what it knows the type of, and writes plain objects, quickly, and
// leaves all else to another codec.
type quickCodec struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (c quickCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	u, ok := into.(*unstructured.Unstructured)
	if !ok {
		return c.decodeTyped(data, defaults, into)
	}
	obj, ok := parsed(data)
	if !ok || text(obj, "kind") == "" || text(obj, "kind") == "Status" || text(obj, "apiVersion") == "" || obj["items"] != nil {
		return c.Serializer.Decode(data, defaults, into)
	}
	u.Object = obj
	gvk := u.GroupVersionKind()
	return u, &gvk, nil
}

// decodeTyped does without looking for the kind before all else is read.
func (c quickCodec) decodeTyped(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	switch into.(type) {
	case *corev1.ServiceAccount, *corev1.ConfigMap, *corev1.Secret, *coordinationv1.Lease:
	default:
		return c.Serializer.Decode(data, defaults, into)
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(into)
	if err != nil || unmarshal(data, into) != nil || into.GetObjectKind().GroupVersionKind() != kinds[0] {
		reflect.ValueOf(into).Elem().SetZero()
		return c.Serializer.Decode(data, defaults, into)
	}
	return into, &kinds[0], nil
}

// Encode implements runtime.Encoder.
func (c quickCodec) Encode(obj runtime.Object, w io.Writer) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || text(u.Object, "kind") == "" {
		return c.Serializer.Encode(obj, w)
	}
	_, err := w.Write(append(encode(u.Object), '\n'))
	return err
}
