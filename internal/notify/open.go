package notify

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"janus.io/janus/internal/target"
)

// Opener watches objects of a cluster as the ServiceAccounts of Transactions, whose clients may have
// no request timeout.
func Opener(accounts *target.Clients, resolver *target.Resolver) func(context.Context, Object) (watch.Interface, error) {
	return func(ctx context.Context, of Object) (watch.Interface, error) {
		resource, err := resolver.Served(of.ID)
		if err != nil {
			return nil, err
		}
		as, err := accounts.As(ctx, of.Account)
		if err != nil {
			return nil, err
		}
		stream, err := as.Metadata.Resource(resource).Namespace(of.Namespace).Watch(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, of.Name).String(), AllowWatchBookmarks: true,
		})
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", of.ID, err)
		}
		return stream, nil
	}
}
