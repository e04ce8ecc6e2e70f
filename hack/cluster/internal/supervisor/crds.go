package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// createCRDs creates the CustomResourceDefinitions in the files *.yaml of a directory,
// at most one in each; other objects are left out. One that exists already is left
// alone.
//
// The controllers learn of a kind that is installed after they have started only
// when they next look, which takes the garbage collector half a minute or more.
func (c apiClient) createCRDs(ctx context.Context, server, dir string) error {
	patient := *c.http
	patient.Timeout = 0 // ctx bounds it: a large definition may take seconds on a busy machine.
	c.http = &patient
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(fmt.Errorf("no file *.yaml in %s", dir), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		body, err := yaml.YAMLToJSON(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		var object struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(body, &object); err != nil || object.Kind != "CustomResourceDefinition" {
			continue
		}
		err = c.post(ctx, server+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json.RawMessage(body))
		var status *statusError
		if errors.As(err, &status) && status.code == http.StatusConflict {
			continue
		}
		if err != nil {
			return fmt.Errorf("create the CustomResourceDefinition of %s: %w", file, err)
		}
	}
	return nil
}
