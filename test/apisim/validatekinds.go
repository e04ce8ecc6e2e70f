package apisim

import (
	"encoding/base64"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateConfigMap(obj content) field.ErrorList {
	var errs field.ErrorList
	size := 0
	data, _ := obj["data"].(content)
	binary, _ := obj["binaryData"].(content)
	for key, value := range data {
		errs = append(errs, keyErrors("data", key)...)
		if _, twice := binary[key]; twice {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(value.(string))
	}
	for key, value := range binary {
		errs = append(errs, keyErrors("binaryData", key)...)
		size += base64Len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

func base64Len(value any) int {
	s, _ := value.(string)
	n := base64.StdEncoding.DecodedLen(len(s))
	for len(s) > 0 && s[len(s)-1] == '=' {
		n, s = n-1, s[:len(s)-1]
	}
	return n
}

func keyErrors(of, key string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(field.NewPath(of).Key(key), key, message))
	}
	return errs
}

func validateConfigMapUpdate(obj, old content) field.ErrorList {
	return immutable(obj, old, "data", "binaryData")
}

// immutable refuses changes of an object that was made immutable.
func immutable(obj, old content, fields ...string) field.ErrorList {
	if old["immutable"] != true {
		return nil
	}
	const message = "field is immutable when `immutable` is set"
	var errs field.ErrorList
	if obj["immutable"] != true {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), message))
	}
	for _, name := range fields {
		if !equal(obj[name], old[name]) {
			errs = append(errs, field.Forbidden(field.NewPath(name), message))
		}
	}
	return errs
}

func validateSecret(obj content) field.ErrorList {
	var errs field.ErrorList
	size := 0
	data, _ := obj["data"].(content)
	at := field.NewPath("data")
	for key, value := range data {
		errs = append(errs, keyErrors("data", key)...)
		size += base64Len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(at, "", corev1.MaxSecretSize))
	}
	need := func(key string) {
		if _, ok := data[key]; !ok {
			errs = append(errs, field.Required(at.Key(key), ""))
		}
	}
	wellFormed := func(key string) {
		need(key)
		if value, ok := data[key].(string); ok {
			decoded, _ := base64.StdEncoding.DecodeString(value)
			if err := json.Unmarshal(decoded, &map[string]any{}); err != nil {
				errs = append(errs, field.Invalid(at.Key(key), "<secret contents redacted>", err.Error()))
			}
		}
	}
	switch corev1.SecretType(text(obj, "type")) {
	case corev1.SecretTypeServiceAccountToken:
		if accessor(obj).GetAnnotations()[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg:
		wellFormed(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		wellFormed(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		_, user := data[corev1.BasicAuthUsernameKey]
		if _, password := data[corev1.BasicAuthPasswordKey]; !user && !password {
			need(corev1.BasicAuthUsernameKey)
			need(corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if text(data, corev1.SSHAuthPrivateKey) == "" {
			errs = append(errs, field.Required(at.Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		need(corev1.TLSCertKey)
		need(corev1.TLSPrivateKeyKey)
	}
	return errs
}

func validateSecretUpdate(obj, old content) field.ErrorList {
	var errs field.ErrorList
	if text(obj, "type") != text(old, "type") {
		errs = append(errs, field.Invalid(field.NewPath("type"), corev1.SecretType(text(obj, "type")), apivalidation.FieldImmutableErrorMsg))
	}
	return append(errs, immutable(obj, old, "data")...)
}

func validateLease(obj content) field.ErrorList {
	var errs field.ErrorList
	spec, _ := obj["spec"].(content)
	at := field.NewPath("spec")
	if n, ok := spec["leaseDurationSeconds"].(int64); ok && n <= 0 {
		errs = append(errs, field.Invalid(at.Child("leaseDurationSeconds"), n, "must be greater than 0"))
	}
	if n, ok := spec["leaseTransitions"].(int64); ok && n < 0 {
		errs = append(errs, field.Invalid(at.Child("leaseTransitions"), n, "must be greater than or equal to 0"))
	}
	return errs
}

func validateRevision(obj content) field.ErrorList {
	var errs field.ErrorList
	if obj["data"] == nil {
		errs = append(errs, field.Required(field.NewPath("data"), "data is mandatory"))
	}
	if number, _ := obj["revision"].(int64); number < 0 {
		errs = append(errs, field.Invalid(field.NewPath("revision"), number, apivalidation.IsNegativeErrorMsg))
	}
	return errs
}

func validateRevisionUpdate(obj, old content) field.ErrorList {
	if equal(obj["data"], old["data"]) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("data"), field.OmitValueType{}, apivalidation.FieldImmutableErrorMsg)}
}
