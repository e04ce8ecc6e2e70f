package controller

import (
	"context"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
)

// tidy takes the place of another attempt when there will be none: the last one may have
// failed because another process has ended the Transaction.
func (c *Controller) tidy(ctx context.Context, name types.NamespacedName) {
	log := c.log.With(identified(name)...)
	defer func() {
		if p := recover(); p != nil {
			log.Error("releasing what a deleted Transaction held panicked, which is a defect of janusd", zap.Any("panic", p), zap.Stack("stack"))
		}
	}()
	t, err := c.reader.Read(ctx, name)
	if err == nil && t != nil {
		err = c.engine.Tidy(ctx, t)
	}
	if err != nil {
		log.Warn("releasing what a deleted Transaction held failed", zap.Error(err))
	}
}
