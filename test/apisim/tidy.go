package apisim

import (
	"strings"
	"time"
)

// tidy reports whether metadata are in the form that their Go type would give them.
// It may say no to some that are; those are converted.
func tidy(m content) bool {
	for k, v := range m {
		ok := false
		switch k {
		case "name", "generateName", "namespace", "uid", "resourceVersion", "selfLink":
			ok = v != "" && isText(v)
		case "creationTimestamp", "deletionTimestamp":
			ok = isTime(v)
		case "generation":
			n, isNumber := v.(int64)
			ok = isNumber && n != 0
		case "deletionGracePeriodSeconds":
			_, ok = v.(int64)
		case "labels", "annotations":
			ok = tidyMap(v)
		case "finalizers":
			list, _ := v.([]any)
			ok = len(list) > 0
			for _, f := range list {
				ok = ok && isText(f)
			}
		case "ownerReferences":
			ok = tidyList(v, tidyOwner)
		case "managedFields":
			ok = tidyList(v, tidyEntry)
		}
		if !ok {
			return false
		}
	}
	return true
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

// isTime knows the form in which times are stored.
func isTime(v any) bool {
	s, _ := v.(string)
	if len(s) != len("2006-01-02T15:04:05Z") || !strings.HasSuffix(s, "Z") {
		return false
	}
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

func tidyMap(v any) bool {
	m, _ := v.(content)
	for _, value := range m {
		if !isText(value) {
			return false
		}
	}
	return len(m) > 0
}

func tidyList(v any, each func(content) bool) bool {
	list, _ := v.([]any)
	for _, item := range list {
		if m, ok := item.(content); !ok || !each(m) {
			return false
		}
	}
	return len(list) > 0
}

func tidyOwner(m content) bool {
	for k, v := range m {
		switch k {
		case "apiVersion", "kind", "name", "uid":
			if !isText(v) {
				return false
			}
		case "controller", "blockOwnerDeletion":
			if _, ok := v.(bool); !ok {
				return false
			}
		default:
			return false
		}
	}
	return m["apiVersion"] != nil && m["kind"] != nil && m["name"] != nil && m["uid"] != nil
}

func tidyEntry(m content) bool {
	for k, v := range m {
		switch k {
		case "manager", "operation", "apiVersion", "fieldsType", "subresource":
			if v == "" || !isText(v) {
				return false
			}
		case "time":
			if !isTime(v) {
				return false
			}
		case "fieldsV1":
			if _, ok := v.(content); !ok {
				return false
			}
		default:
			return false
		}
	}
	return true
}
