// Package bundles tries what people install: an operator with its definition and webhooks, a
// monitoring stack, an ingress controller, and a shop. Each directory has the manifests of
// two versions, v1.yaml and v2.yaml. The test installs the first, upgrades to the second with a
// last change that fails, upgrades for good, and undoes that; each time every field and every owner
// is compared with before.
//
// Other bundles, such as those that people download, are tried by
//
//	go test ./hack/bundles -dir=DIRECTORY
//
// where each directory below DIRECTORY is one. Their Pods run on simulated Nodes, so any image
// will do; the webhooks that they bring must let their own objects pass without an answer.
package bundles
