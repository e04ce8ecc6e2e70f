package sweep

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// converter is a webhook that converts Cups: spec.size of their v1 is text, and spec.count of
// their v2 a number.
type converter struct{ url, authority string }

func newConverter(t *testing.T) *converter {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(convert))
	t.Cleanup(server.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &converter{url: server.URL + "/convert", authority: base64.StdEncoding.EncodeToString(certificate)}
}

func convert(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID               string    `json:"uid"`
			DesiredAPIVersion string    `json:"desiredAPIVersion"`
			Objects           []content `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, obj := range review.Request.Objects {
		obj["apiVersion"] = review.Request.DesiredAPIVersion
		spec, _ := obj["spec"].(content)
		if strings.HasSuffix(review.Request.DesiredAPIVersion, "/v2") {
			if size, ok := spec["size"].(string); ok {
				spec["count"], _ = strconv.Atoi(size)
			}
			delete(spec, "size")
			continue
		}
		if count, ok := spec["count"].(float64); ok {
			spec["size"] = strconv.Itoa(int(count))
		}
		delete(spec, "count")
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(content{"apiVersion": review.APIVersion, "kind": review.Kind, "response": content{
		"uid": review.Request.UID, "convertedObjects": review.Request.Objects, "result": content{"status": "Success"},
	}})
}
