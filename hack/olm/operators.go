//go:build operators

package main

// The tests read the definitions of ServiceMonitors and PrometheusRules that this module has in
// its files, and nothing imports it.
import _ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
