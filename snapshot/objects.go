package snapshot

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// objects reaches the objects that hold before-images. It works on the REST
// client below the typed ones, because both kinds are treated alike, and because
// only there can an answer be cut to the metadata: a megabyte that was just sent
// need not come back.
type objects struct{ client rest.Interface }

// metadataOnly asks for an answer without data.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// object is a ConfigMap or Secret as it is.
type object struct {
	meta      metav1.ObjectMeta
	data      map[string]string
	immutable bool
}

func (s objects) create(ctx context.Context, namespace string, k kind, body runtime.Object) error {
	return s.client.Post().Namespace(namespace).Resource(k.resource()).
		SetHeader("Accept", metadataOnly).Body(body).Do(ctx).Error()
}

// get reads an object with its data.
func (s objects) get(ctx context.Context, namespace string, k kind, name string) (object, error) {
	answer := s.client.Get().Namespace(namespace).Resource(k.resource()).Name(name).Do(ctx)
	if k == configMaps {
		var cm corev1.ConfigMap
		err := answer.Into(&cm)
		return object{cm.ObjectMeta, cm.Data, cm.Immutable != nil && *cm.Immutable}, err
	}
	var secret corev1.Secret
	if err := answer.Into(&secret); err != nil {
		return object{}, err
	}
	data := make(map[string]string, len(secret.Data))
	for key, value := range secret.Data {
		data[key] = string(value)
	}
	return object{secret.ObjectMeta, data, secret.Immutable != nil && *secret.Immutable}, nil
}

// metadata reads an object without its data.
func (s objects) metadata(ctx context.Context, namespace string, k kind, name string) (metav1.ObjectMeta, error) {
	return metadataOf(s.client.Get().Namespace(namespace).Resource(k.resource()).Name(name).
		SetHeader("Accept", metadataOnly).Do(ctx))
}

// transaction reads the metadata of a Transaction.
func (s objects) transaction(ctx context.Context, namespace, name string) (metav1.ObjectMeta, error) {
	r := v1alpha1.Resource
	return metadataOf(s.client.Get().
		AbsPath("/apis", r.Group, r.Version, "namespaces", namespace, r.Resource, name).
		SetHeader("Accept", metadataOnly).Do(ctx))
}

// patch sends a patch and returns the metadata of the result.
func (s objects) patch(ctx context.Context, namespace string, k kind, name string, as types.PatchType, patch any) (metav1.ObjectMeta, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return metav1.ObjectMeta{}, fmt.Errorf("encode a patch: %w", err)
	}
	return metadataOf(s.client.Patch(as).Namespace(namespace).Resource(k.resource()).Name(name).
		SetHeader("Accept", metadataOnly).Body(body).Do(ctx))
}

// delete deletes the object that meta describes, and no other.
func (s objects) delete(ctx context.Context, k kind, meta metav1.ObjectMeta) error {
	return s.client.Delete().Namespace(meta.Namespace).Resource(k.resource()).Name(meta.Name).
		SetHeader("Accept", metadataOnly).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
			UID: &meta.UID, ResourceVersion: &meta.ResourceVersion,
		}}).Do(ctx).Error()
}

func metadataOf(answer rest.Result) (metav1.ObjectMeta, error) {
	if err := answer.Error(); err != nil {
		return metav1.ObjectMeta{}, err
	}
	raw, err := answer.Raw()
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	var partial metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &partial); err != nil {
		return metav1.ObjectMeta{}, fmt.Errorf("decode the metadata of an object: %w", err)
	}
	return partial.ObjectMeta, nil
}

// transactionOf is the Transaction that controls an object; ok is false when
// none does.
func transactionOf(meta metav1.ObjectMeta) (ref metav1.OwnerReference, ok bool) {
	controller := metav1.GetControllerOfNoCopy(&meta)
	if controller == nil || controller.Kind != v1alpha1.Kind.Kind {
		return metav1.OwnerReference{}, false
	}
	gv, err := schema.ParseGroupVersion(controller.APIVersion)
	return *controller, err == nil && gv.Group == v1alpha1.Kind.Group
}

func ownedBy(meta metav1.ObjectMeta, o Owner) bool {
	ref, ok := transactionOf(meta)
	return ok && ref.UID == o.UID
}

// wrap says what failed on which object. No answer to a request that carried a
// record is quoted, since it may quote the record.
func wrap(err error, op, namespace string, k kind, name string, carried bool) error {
	return errclass.Wrap(err, op, describe(namespace, k, name), carried || k == secrets)
}

func describe(namespace string, k kind, name string) string {
	return string(k) + " " + namespace + "/" + name
}
