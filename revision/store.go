package revision

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// ChangesLabel has what Changes gives, so that revisions which did the same can be
// selected.
const ChangesLabel = "janus.io/changes"

// StateLabel has what State gives, so that revisions after which their objects were the same can be
// selected.
const StateLabel = "janus.io/state"

// UnchangedLabel is true on the revision of a Transaction that has written nothing.
const UnchangedLabel = "janus.io/unchanged"

// Store reaches the revisions, and the numbers that they have. It may be used concurrently.
type Store struct {
	client   rest.Interface
	counters counters
}

// NewStore stores through client, which acts as Janus itself. It needs get, list,
// create, update and delete on ControllerRevisions.
func NewStore(client kubernetes.Interface) *Store {
	return &Store{client: client.AppsV1().RESTClient()}
}

const (
	resource     = "controllerrevisions"
	metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	// selector is cheap for a server that keeps the ControllerRevisions of
	// StatefulSets and DaemonSets too.
	selector = "app.kubernetes.io/managed-by=janus"
	// pageSize is how many are listed with one request.
	pageSize = 500
)

// Entry is a revision as a list shows it.
type Entry struct {
	Number int64
	Owner  Owner
	// State is what State gave; empty if not all of it is known.
	State string
	// Unchanged says that nothing was written.
	Unchanged bool
	meta      metav1.ObjectMeta
}

// List lists the revisions of a namespace, the lowest number first.
func (s *Store) List(ctx context.Context, namespace string) ([]Entry, error) {
	var out []Entry
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for {
		page, err := s.page(ctx, namespace, options)
		if err != nil {
			return nil, errclass.Wrap(err, "list the revisions of", "namespace "+namespace, false)
		}
		for _, item := range page.Items {
			owner, ok := ownerOf(item.ObjectMeta)
			if number := numberOf(item.Name); ok && number > 0 {
				out = append(out, Entry{number, owner, item.Labels[StateLabel], item.Labels[UnchangedLabel] == "true", item.ObjectMeta})
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return int(min(max(a.Number-b.Number, -1), 1)) })
	return out, nil
}

// body is what the API server has answered. Raw alone does not read why a request was refused.
func body(answer rest.Result) ([]byte, error) {
	if err := answer.Error(); err != nil {
		return nil, err
	}
	return answer.Raw()
}

func (s *Store) page(ctx context.Context, namespace string, options metav1.ListOptions) (metav1.PartialObjectMetadataList, error) {
	var page metav1.PartialObjectMetadataList
	request := s.client.Get().Namespace(namespace).Resource(resource).SetHeader("Accept", metadataList).
		Param("labelSelector", options.LabelSelector).Param("limit", fmt.Sprint(options.Limit))
	if options.Continue != "" {
		request = request.Param("continue", options.Continue)
	}
	raw, err := body(request.Do(ctx))
	if err != nil {
		return page, err
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return page, fmt.Errorf("decode a list of revisions: %w", err)
	}
	return page, nil
}

// Create makes the revision with a number. That it is there already is no error, but
// taken says that the number is another Transaction's.
func (s *Store) Create(ctx context.Context, namespace string, number int64, labels map[string]string, r Revision) (taken bool, err error) {
	body, err := object(namespace, number, labels, r)
	if err != nil {
		return false, err
	}
	err = s.client.Post().Namespace(namespace).Resource(resource).SetHeader("Accept", metadataOnly).Body(body).Do(ctx).Error()
	if !errclass.Is(err, errclass.AlreadyExists) {
		return false, errclass.Wrap(err, "create", Describe(namespace, number), false)
	}
	owner, err := s.Owner(ctx, namespace, number)
	if errclass.Is(err, errclass.NotFound) {
		return false, errclass.New(errclass.Retryable, errclass.AlreadyExists, "create", Describe(namespace, number), "it was there a moment ago, and is gone")
	}
	return owner != r.Transaction, err
}

// Owner returns the Transaction that a revision belongs to; none for one of another client.
// An error of reason NotFound means that there is no revision with that number.
func (s *Store) Owner(ctx context.Context, namespace string, number int64) (Owner, error) {
	meta, err := target.Confirmed(func() (metav1.ObjectMeta, error) { return s.metadata(ctx, namespace, number) })
	if err != nil {
		return Owner{}, errclass.Wrap(err, "get", Describe(namespace, number), false)
	}
	owner, _ := ownerOf(meta)
	return owner, nil
}

func (s *Store) metadata(ctx context.Context, namespace string, number int64) (metav1.ObjectMeta, error) {
	var partial metav1.PartialObjectMetadata
	raw, err := body(s.client.Get().Namespace(namespace).Resource(resource).Name(Name(number)).SetHeader("Accept", metadataOnly).Do(ctx))
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	if err := json.Unmarshal(raw, &partial); err != nil {
		return metav1.ObjectMeta{}, fmt.Errorf("decode the metadata of a revision: %w", err)
	}
	return partial.ObjectMeta, nil
}

// Get reads the revision with a number. An error of reason NotFound means that there
// is none.
func (s *Store) Get(ctx context.Context, namespace string, number int64) (Revision, error) {
	found, err := target.Confirmed(func() (*appsv1.ControllerRevision, error) {
		var found appsv1.ControllerRevision
		err := s.client.Get().Namespace(namespace).Resource(resource).Name(Name(number)).Do(ctx).Into(&found)
		return &found, err
	})
	if err != nil {
		return Revision{}, errclass.Wrap(err, "read", Describe(namespace, number), false)
	}
	r, err := Decode(found.Data.Raw)
	owner, ours := ownerOf(found.ObjectMeta)
	if err == nil && (!ours || owner != r.Transaction) {
		err = errNotARevision
	}
	if err != nil {
		return Revision{}, errclass.New(errclass.Terminal, errclass.Invalid, "read", Describe(namespace, number), "%w", err)
	}
	return r, nil
}

// Delete deletes a revision as it was listed, and no other of its name.
func (s *Store) Delete(ctx context.Context, e Entry) error {
	err := s.client.Delete().Namespace(e.meta.Namespace).Resource(resource).Name(e.meta.Name).SetHeader("Accept", metadataOnly).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &e.meta.UID}}).Do(ctx).Error()
	if errclass.Is(err, errclass.NotFound) {
		return nil
	}
	return errclass.Wrap(err, "delete", Describe(e.meta.Namespace, e.Number), false)
}

func object(namespace string, number int64, labels map[string]string, r Revision) (*appsv1.ControllerRevision, error) {
	data, err := sorted(r)
	if err != nil {
		return nil, err
	}
	changes, err := Changes(r)
	if err != nil {
		return nil, err
	}
	all := map[string]string{ChangesLabel: changes}
	if state := State(r); state != "" {
		all[StateLabel] = state
	}
	for key, value := range labels {
		all[key] = value
	}
	owner := v1alpha1.OwnerReference(r.Transaction.Name, r.Transaction.UID)
	owner.Controller = ptr.To(true) // As with before-images, blockOwnerDeletion stays unset.
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: Name(number), Labels: all,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Revision: number,
		Data:     runtime.RawExtension{Raw: data},
	}, nil
}

// ownerOf is the Transaction that controls a revision.
func ownerOf(meta metav1.ObjectMeta) (Owner, bool) {
	controller := metav1.GetControllerOfNoCopy(&meta)
	if controller == nil || controller.Kind != v1alpha1.Kind.Kind {
		return Owner{}, false
	}
	gv, err := schema.ParseGroupVersion(controller.APIVersion)
	if err != nil || gv.Group != v1alpha1.Kind.Group {
		return Owner{}, false
	}
	return Owner{Name: controller.Name, UID: controller.UID}, true
}

// Describe names a revision as messages do.
func Describe(namespace string, number int64) string {
	return "ControllerRevision " + namespace + "/" + Name(number)
}
