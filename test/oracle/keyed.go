package oracle

import (
	"sort"
	"strings"
)

// listKeys are the keyed lists of Kubernetes, by the name of their field, with the
// fields that are the identity of an item; the first that all items have counts.
var listKeys = map[string][][]string{
	"containers": {{"name"}}, "initContainers": {{"name"}}, "ephemeralContainers": {{"name"}}, "env": {{"name"}},
	"volumes": {{"name"}}, "volumeMounts": {{"mountPath"}}, "volumeDevices": {{"devicePath"}}, "imagePullSecrets": {{"name"}},
	"ports":           {{"containerPort", "protocol"}, {"port", "protocol"}, {"containerPort"}, {"port"}},
	"ownerReferences": {{"uid"}}, "finalizers": {{}}, "hostAliases": {{"ip"}}, "topologySpreadConstraints": {{"topologyKey", "whenUnsatisfiable"}},
	"webhooks": {{"name"}}, "secrets": {{"name"}}, "conditions": {{"type"}},
}

// keyed makes an object of a list.
func (c *trial) keyed(items []any, ids []string) any {
	out := make(map[string]any, len(items))
	for i, item := range items {
		part := c.parts("", item)
		if part == nil {
			part = map[string]any{}
		}
		out[ids[i]] = part
	}
	return out
}

// identities tells the items of a list apart; nil if it has no keys, or if an item lacks
// one or has that of another.
func (c *trial) identities(name string, items []any) []string {
	ways := listKeys[name]
	if keys, ok := c.ListKeys[name]; ok {
		ways = [][]string{keys}
	}
	for _, keys := range ways {
		if ids := identitiesBy(items, keys); ids != nil {
			return ids
		}
	}
	return nil
}

func identitiesBy(items []any, keys []string) []string {
	out := make([]string, len(items))
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		id := ""
		if len(keys) == 0 {
			id = "[=" + encoded(item) + "]"
		} else {
			object, _ := item.(map[string]any)
			var pairs []string
			for _, key := range keys {
				value, ok := object[key]
				if !ok {
					return nil
				}
				pairs = append(pairs, key+"="+encoded(value))
			}
			sort.Strings(pairs)
			id = "[" + strings.Join(pairs, ",") + "]"
		}
		if seen[id] {
			return nil
		}
		seen[id], out[i] = true, id
	}
	return out
}

// isKey reports whether a path is of a field that is the identity of the item of a
// list, or a part of it.
func isKey(path []string) bool {
	n := len(path)
	return n > 1 && (strings.HasPrefix(path[n-2], "["+path[n-1]+"=") || strings.Contains(path[n-2], ","+path[n-1]+"="))
}
