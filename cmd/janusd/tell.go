package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"janus.io/janus/internal/settings"
)

// tellAgain is how long janusd waits before it tries again to tell its settings.
const tellAgain = 10 * time.Second

// tell writes the settings where clients read them, once. janusd works without that: clients then
// take all content for confidential.
func (c *clients) tell(ctx context.Context, namespace string, s settings.Settings, log *zap.Logger) {
	log = log.With(zap.String("configMap", namespace+"/"+settings.Name))
	_ = wait.PollUntilContextCancel(ctx, tellAgain, true, func(ctx context.Context) (bool, error) {
		err := c.tellOnce(ctx, namespace, s)
		switch {
		case err == nil:
			return true, nil
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
			log.Error("cannot tell clients which kinds are sensitive, so that kubectl janus takes all content for confidential; "+
				"apply the Role janusd-own-namespace of this version", zap.Error(err))
			return true, nil
		default:
			log.Info("could not tell clients which kinds are sensitive; trying again", zap.Error(err))
			return false, nil
		}
	})
}

// tellOnce creates the ConfigMap, or changes that of an earlier janusd. Replicas write the same;
// while they are replaced by others with other flags, the last that started is right.
func (c *clients) tellOnce(ctx context.Context, namespace string, s settings.Settings) error {
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: settings.Name, Labels: map[string]string{"app.kubernetes.io/name": "janusd", "app.kubernetes.io/part-of": "janus"}},
		Data:       s.Data(),
	}
	_, err := c.own.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	patch, err := json.Marshal(map[string]any{"data": s.Data()})
	if err != nil {
		return fmt.Errorf("encode the settings: %w", err)
	}
	_, err = c.own.CoreV1().ConfigMaps(namespace).Patch(ctx, settings.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
