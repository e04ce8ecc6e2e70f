// Package crd has the CustomResourceDefinition of Transactions in it, for programs that
// check manifests without a cluster.
package crd

import _ "embed"

// Transactions is the definition, as YAML.
//
//go:embed backup.janus.io_transactions.yaml
var Transactions []byte
