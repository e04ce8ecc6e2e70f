package packages

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"janus.io/janus/internal/registries"
	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
)

// DefaultNamespace is the namespace of Crossplane where nobody says otherwise.
const DefaultNamespace = "crossplane-system"

// Pulling reads images with the Secrets that Crossplane would use, and then with the
// credentials of the user, as docker, oras or crane have stored them.
func Pulling(cluster dynamic.Interface, namespace string, patience registries.Patience) Registries {
	secrets := secretsOf(cluster, namespace)
	return func(ctx context.Context, names []string) (Registry, error) {
		own, err := credentials.NewStoreFromDocker(credentials.StoreOptions{DetectDefaultNativeStore: true})
		if err != nil {
			return nil, fmt.Errorf("read the credentials for registries: %w", err)
		}
		stores, err := secrets(ctx, names)
		if err != nil {
			return nil, err
		}
		return image.Client{Patience: patience, Credential: credentialOf(append(stores, own))}, nil
	}
}

// PullingWithSecrets reads images with the Secrets that Crossplane would use, and with no other
// credentials: for a program that acts for others. None of the images may have more than
// maxPackage bytes of YAML.
func PullingWithSecrets(cluster dynamic.Interface, namespace string, patience registries.Patience, maxPackage int64) Registries {
	secrets := secretsOf(cluster, namespace)
	return func(ctx context.Context, names []string) (Registry, error) {
		stores, err := secrets(ctx, names)
		if err != nil {
			return nil, err
		}
		return image.Client{Patience: patience, Credential: credentialOf(stores), MaxPackage: maxPackage}, nil
	}
}

// secretsOf reads Secrets with credentials in the namespace of Crossplane.
func secretsOf(cluster dynamic.Interface, namespace string) func(ctx context.Context, names []string) ([]credentials.Store, error) {
	secrets := cluster.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	return func(ctx context.Context, names []string) ([]credentials.Store, error) {
		var stores []credentials.Store
		for _, name := range names {
			u, err := secrets.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, fmt.Errorf("read pull secret %s/%s: %w", namespace, name, err)
			}
			store, err := storeOf(u)
			if err != nil {
				return nil, fmt.Errorf("read pull secret %s/%s: %w", namespace, name, err)
			}
			stores = append(stores, store)
		}
		return stores, nil
	}
}

// credentialOf takes what the first of some stores has.
func credentialOf(stores []credentials.Store) image.Credential {
	return func(ctx context.Context, host string) (auth.Credential, error) {
		for _, store := range stores {
			found, err := credentials.Credential(store)(ctx, host)
			if err != nil || found != auth.EmptyCredential {
				return found, err
			}
		}
		return auth.EmptyCredential, nil
	}
}

// storeOf reads the credentials in a Secret. Its error has none of them.
func storeOf(u *unstructured.Unstructured) (credentials.Store, error) {
	const key = ".dockerconfigjson"
	encoded, _, _ := unstructured.NestedString(u.Object, "data", key)
	if encoded == "" {
		return nil, fmt.Errorf("it has no key %s", key)
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("its key %s is no base64", key)
	}
	store, err := credentials.NewMemoryStoreFromDockerConfig(text)
	if err != nil {
		return nil, fmt.Errorf("its key %s has no credentials for registries", key)
	}
	return store, nil
}

// upgrades is the flag by which Crossplane moves dependencies by itself.
const upgrades = "--enable-dependency-version-upgrades"

// Crossplane finds out what Crossplane is, by its Deployment. If that is not there, or may not
// be read, nothing is known.
func Crossplane(ctx context.Context, cluster dynamic.Interface, namespace string) installed.Crossplane {
	var out installed.Crossplane
	u, err := cluster.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(namespace).Get(ctx, "crossplane", metav1.GetOptions{})
	if err != nil {
		return out
	}
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		of, _ := c.(map[string]any)
		args, _, _ := unstructured.NestedStringSlice(of, "args")
		if slices.ContainsFunc(args, func(arg string) bool { return arg == upgrades || arg == upgrades+"=true" }) {
			out.Upgrades = true
		}
		named, _, _ := unstructured.NestedString(of, "image")
		if ref, err := image.ParseReference(named); err == nil && out.Version == "" && strings.HasPrefix(ref.Version, "v") {
			out.Version = ref.Version
		}
	}
	if out.Version == "" {
		out.Version = u.GetLabels()["app.kubernetes.io/version"]
	}
	return out
}
