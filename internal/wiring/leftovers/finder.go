package leftovers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/leasetable"
	"janus.io/janus/internal/sharedlease"
	"janus.io/janus/snapshot"
)

const (
	// parallel is how many Transactions are looked at side by side: what runs meanwhile needs the
	// API server more.
	parallel = 4
	// page is how many Leases are listed at a time.
	page = 1000
)

// A Finder finds leftovers.
type Finder struct {
	leases coordinationv1client.LeasesGetter
	store  *snapshot.Store
}

// NewFinder makes a Finder. The leases are the objects, tables among them.
func NewFinder(leases coordinationv1client.LeasesGetter, store *snapshot.Store) *Finder {
	return &Finder{leases, store}
}

// IsPlain is the function of that name for the kinds that are confidential here.
func (f *Finder) IsPlain(changes []Change, items []Item, images *api.RollbackRef) bool {
	return IsPlain(changes, items, images, f.store.Sensitive)
}

// Find returns those of which something is left, or of which that can't be told. It must begin when
// nothing can land any more that a process has sent which is dead by now. An error, such as that the
// Leases may not be listed, is about all of them.
func (f *Finder) Find(ctx context.Context, ended []Ended) (map[types.UID]bool, error) {
	holders, err := f.holders(ctx)
	if err != nil {
		return nil, err
	}
	left := make([]bool, len(ended))
	fanout.Do(parallel, len(ended), func(i int) {
		left[i] = holders[identityOf(ended[i])] || f.hasImages(ctx, ended[i])
	})
	out := map[types.UID]bool{}
	for i := range ended {
		if left[i] {
			out[ended[i].UID] = true
		}
	}
	return out, nil
}

// hasImages reports whether there are before-images, or whether that can't be told.
func (f *Finder) hasImages(ctx context.Context, e Ended) bool {
	there, err := f.store.Exist(ctx, ownerOf(e), e.Images)
	return there || err != nil
}

// holders are those who have a lock, or wait to have a shared one alone. The Leases are listed twice,
// since nobody looks for what one answer lacks.
func (f *Finder) holders(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	for range 2 {
		leases, err := f.list(ctx, snapshot.AnyLabels())
		if err != nil {
			return nil, err
		}
		for i := range leases {
			for _, holder := range sharedlease.Holders(&leases[i]) {
				out[holder] = true
			}
			if next := sharedlease.NextOf(&leases[i]); next != "" {
				out[next] = true
			}
		}
	}
	return out, nil
}

// list returns the Leases of all namespaces with some labels, and those that are in tables.
func (f *Finder) list(ctx context.Context, with map[string]string) ([]coordinationv1.Lease, error) {
	options := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(with).String(), Limit: page}
	var all []coordinationv1.Lease
	for {
		list, err := f.leases.Leases(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list the Leases of all locks: %w", err)
		}
		all = append(all, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	all = leasetable.Expand(all)
	for i := range all {
		if err := leasetable.Broken(&all[i]); err != nil {
			return nil, fmt.Errorf("find out whose locks Lease %s/%s has: %w", all[i].Namespace, all[i].Name, err)
		}
	}
	return all, nil
}

// Remove removes the leftovers of a Transaction that is gone: Leases that it has alone, and before-images.
// Its part of a shared Lease, or of a table, ends with its time.
func (f *Finder) Remove(ctx context.Context, e Ended) error {
	leases, err := f.list(ctx, snapshot.Labels(e.Name.Name))
	if err != nil {
		return err
	}
	var errs []error
	for i := range leases {
		lease := &leases[i]
		if slices.Equal(sharedlease.Holders(lease), []string{identityOf(e)}) && ptr.Deref(lease.Spec.HolderIdentity, "") == identityOf(e) {
			errs = append(errs, f.delete(ctx, lease))
		}
	}
	owner := ownerOf(e)
	if snapshot.NamesNone(e.Images) {
		errs = append(errs, f.store.Sweep(ctx, owner, snapshot.SavesOfPlain))
	} else {
		errs = append(errs, f.store.SweepUnlisted(ctx, owner, e.Images, true), f.store.Drop(ctx, owner, *e.Images))
	}
	return errors.Join(errs...)
}

// delete deletes a Lease as it was read.
func (f *Finder) delete(ctx context.Context, lease *coordinationv1.Lease) error {
	err := f.leases.Leases(lease.Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete Lease %s/%s: %w", lease.Namespace, lease.Name, err)
}

func identityOf(e Ended) string {
	return api.HolderOf(&api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: e.Name.Namespace, Name: e.Name.Name, UID: e.UID}})
}

func ownerOf(e Ended) snapshot.Owner {
	return snapshot.Owner{Namespace: e.Name.Namespace, Name: e.Name.Name, UID: e.UID}
}
