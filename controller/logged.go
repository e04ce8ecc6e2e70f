package controller

import (
	"slices"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
)

// identified are the fields of each line about a Transaction.
func identified(name types.NamespacedName) []zap.Field {
	return []zap.Field{
		zap.String("apiVersion", api.GroupVersion.String()), zap.String("kind", api.Kind.Kind),
		zap.String("namespace", name.Namespace), zap.String("name", name.Name),
	}
}

// versioned are those that say which state of it the line is about.
func versioned(t *api.Transaction) []zap.Field {
	return []zap.Field{
		zap.String("uid", string(t.UID)), zap.String("resourceVersion", t.ResourceVersion), zap.Int64("generation", t.Generation),
	}
}

// about are both.
func about(t *api.Transaction) []zap.Field {
	return slices.Concat(identified(types.NamespacedName{Namespace: t.Namespace, Name: t.Name}), versioned(t))
}
