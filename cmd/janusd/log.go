package main

import (
	"fmt"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

func newLogger(o options) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(o.logLevel)
	if err != nil || level > zapcore.ErrorLevel {
		return nil, fmt.Errorf("--log-level=%s: want debug, info, warn or error", o.logLevel)
	}
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(level)
	config.EncoderConfig.TimeKey = "time"
	config.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	config.Sampling = nil
	config.DisableStacktrace = true
	switch o.logFormat {
	case "json":
	case "console":
		config.Encoding = "console"
		config.EncoderConfig.EncodeLevel = zapcore.CapitalLevelEncoder
	default:
		return nil, fmt.Errorf("--log-format=%s: want json or console", o.logFormat)
	}
	return config.Build()
}

// bridge sends the log lines of client-go the same way as ours.
func bridge(log *zap.Logger) {
	klog.SetLogger(zapr.NewLogger(log.Named("client-go")))
}
