package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
)

// ErrMissing is the error of a cluster without Crossplane.
var ErrMissing = errors.New("crossplane is not installed")

var (
	lockResource    = schema.GroupVersionResource{Group: installed.Group, Version: "v1beta1", Resource: "locks"}
	configsResource = schema.GroupVersionResource{Group: installed.Group, Version: "v1beta1", Resource: "imageconfigs"}
)

// page is how many objects are listed at once.
const page = 500

func packageResource(kind image.Kind) schema.GroupVersionResource {
	resource := map[image.Kind]string{image.Provider: "providers", image.Configuration: "configurations", image.Function: "functions"}[kind]
	return schema.GroupVersionResource{Group: installed.Group, Version: installed.Version, Resource: resource}
}

func revisionResource(kind image.Kind) schema.GroupVersionResource {
	out := packageResource(kind)
	out.Resource = out.Resource[:len(out.Resource)-1] + "revisions"
	return out
}

// State reads what a cluster has of packages. The Lock is read first: if anything changes
// after that, the Lock will be another.
func (p Planner) State(ctx context.Context) (installed.State, error) {
	out := installed.State{Crossplane: p.Crossplane}
	lock, err := p.Cluster.Resource(lockResource).Get(ctx, installed.LockName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return out, ErrMissing
	}
	if err != nil {
		return out, fmt.Errorf("read Crossplane's Lock: %w", err)
	}
	if out.Lock, err = lockOf(lock); err != nil {
		return out, err
	}
	for _, kind := range image.Kinds {
		if err := p.each(ctx, packageResource(kind), func(u *unstructured.Unstructured) error {
			one, err := packageOf(kind, u)
			out.Packages = append(out.Packages, one)
			return err
		}); err != nil {
			return out, err
		}
		if err := p.each(ctx, revisionResource(kind), func(u *unstructured.Unstructured) error {
			one, err := revisionOf(kind, u)
			out.Revisions = append(out.Revisions, one)
			return err
		}); err != nil {
			return out, err
		}
	}
	err = p.each(ctx, configsResource, func(u *unstructured.Unstructured) error {
		one, err := configOf(u)
		out.Configs = append(out.Configs, one)
		return err
	})
	return out, err
}

// each lists the objects of a resource, page by page.
func (p Planner) each(ctx context.Context, resource schema.GroupVersionResource, do func(*unstructured.Unstructured) error) error {
	o := metav1.ListOptions{Limit: page}
	for {
		list, err := p.Cluster.Resource(resource).List(ctx, o)
		if err != nil {
			return fmt.Errorf("list %s: %w", resource.GroupResource(), err)
		}
		for i := range list.Items {
			if err := do(&list.Items[i]); err != nil {
				return err
			}
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

// decode reads an object into the fields that are wanted of it.
func decode(u *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

type conditions []struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	ObservedGeneration int64  `json:"observedGeneration"`
}

func (c conditions) typed() []installed.Condition {
	var out []installed.Condition
	for _, one := range c {
		out = append(out, installed.Condition{Type: one.Type, Reason: one.Reason, Message: one.Message, True: one.Status == "True", Observed: one.ObservedGeneration})
	}
	return out
}

func lockOf(u *unstructured.Unstructured) (installed.Lock, error) {
	var l struct {
		Packages []struct {
			Name         string `json:"name"`
			Kind         string `json:"kind"`
			Type         string `json:"type"`
			Source       string `json:"source"`
			Version      string `json:"version"`
			Dependencies []struct {
				Package     string `json:"package"`
				Kind        string `json:"kind"`
				Type        string `json:"type"`
				Constraints string `json:"constraints"`
			} `json:"dependencies"`
		} `json:"packages"`
		Status struct {
			Conditions conditions `json:"conditions"`
		} `json:"status"`
	}
	if err := decode(u, &l); err != nil {
		return installed.Lock{}, err
	}
	// Older entries say their kind as a type.
	kind := func(kind, other string) image.Kind {
		if kind == "" {
			kind = other
		}
		return image.Kind(kind)
	}
	out := installed.Lock{Generation: u.GetGeneration()}
	for _, p := range l.Packages {
		one := installed.Locked{Name: p.Name, Kind: kind(p.Kind, p.Type), Source: p.Source, Version: p.Version}
		for _, d := range p.Dependencies {
			one.Dependencies = append(one.Dependencies, image.Dependency{Source: d.Package, Kind: kind(d.Kind, d.Type), Range: d.Constraints})
		}
		out.Packages = append(out.Packages, one)
	}
	all := l.Status.Conditions.typed()
	if i := slices.IndexFunc(all, func(c installed.Condition) bool { return c.Type == "Resolved" }); i >= 0 {
		out.Resolved = &all[i]
	}
	return out, nil
}

func packageOf(kind image.Kind, u *unstructured.Unstructured) (installed.Package, error) {
	var p struct {
		Spec struct {
			Package     string `json:"package"`
			Policy      string `json:"revisionActivationPolicy"`
			PullPolicy  string `json:"packagePullPolicy"`
			PullSecrets []struct {
				Name string `json:"name"`
			} `json:"packagePullSecrets"`
			SkipDependencyResolution    bool `json:"skipDependencyResolution"`
			IgnoreCrossplaneConstraints bool `json:"ignoreCrossplaneConstraints"`
		} `json:"spec"`
		Status struct {
			CurrentRevision string     `json:"currentRevision"`
			Conditions      conditions `json:"conditions"`
		} `json:"status"`
	}
	if err := decode(u, &p); err != nil {
		return installed.Package{}, err
	}
	out := installed.Package{
		Kind: kind, Name: u.GetName(), UID: u.GetUID(), Generation: u.GetGeneration(),
		Manual: p.Spec.Policy == "Manual", PullPolicy: p.Spec.PullPolicy,
		SkipsDependencies: p.Spec.SkipDependencyResolution, IgnoresCrossplane: p.Spec.IgnoreCrossplaneConstraints,
		Paused: u.GetAnnotations()["crossplane.io/paused"] == "true", Revision: p.Status.CurrentRevision, Conditions: p.Status.Conditions.typed(),
	}
	out.Labels = u.GetLabels()
	out.Spec, _, _ = unstructured.NestedMap(u.Object, "spec")
	for _, s := range p.Spec.PullSecrets {
		out.PullSecrets = append(out.PullSecrets, s.Name)
	}
	ref, err := image.ParseReference(p.Spec.Package)
	if err != nil {
		// Crossplane says so itself, in its status.
		ref = image.Reference{Source: p.Spec.Package}
	}
	out.Image = ref
	return out, nil
}

func revisionOf(kind image.Kind, u *unstructured.Unstructured) (installed.Revision, error) {
	var r struct {
		Spec struct {
			DesiredState string `json:"desiredState"`
			Image        string `json:"image"`
			Revision     int64  `json:"revision"`
		} `json:"spec"`
		Status struct {
			ObjectRefs []struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Name       string `json:"name"`
			} `json:"objectRefs"`
			Conditions conditions `json:"conditions"`
		} `json:"status"`
	}
	if err := decode(u, &r); err != nil {
		return installed.Revision{}, err
	}
	out := installed.Revision{
		Kind: kind, Name: u.GetName(), Package: u.GetLabels()["pkg.crossplane.io/package"], Active: r.Spec.DesiredState == "Active",
		Number: r.Spec.Revision, Image: r.Spec.Image, Conditions: r.Status.Conditions.typed(),
	}
	for _, o := range r.Status.ObjectRefs {
		out.Objects = append(out.Objects, installed.Object{Group: schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).Group, Kind: o.Kind, Name: o.Name})
	}
	return out, nil
}

func configOf(u *unstructured.Unstructured) (image.Config, error) {
	var c struct {
		Spec struct {
			MatchImages []struct {
				Prefix string `json:"prefix"`
			} `json:"matchImages"`
			Registry struct {
				Authentication struct {
					PullSecretRef struct {
						Name string `json:"name"`
					} `json:"pullSecretRef"`
				} `json:"authentication"`
			} `json:"registry"`
			Verification *struct{} `json:"verification"`
			RewriteImage struct {
				Prefix string `json:"prefix"`
			} `json:"rewriteImage"`
		} `json:"spec"`
	}
	if err := decode(u, &c); err != nil {
		return image.Config{}, err
	}
	out := image.Config{
		Name: u.GetName(), Rewrite: c.Spec.RewriteImage.Prefix, PullSecret: c.Spec.Registry.Authentication.PullSecretRef.Name,
		Verified: c.Spec.Verification != nil,
	}
	for _, m := range c.Spec.MatchImages {
		out.Prefixes = append(out.Prefixes, m.Prefix)
	}
	return out, nil
}
