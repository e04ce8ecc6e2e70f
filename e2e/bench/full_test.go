package bench

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
)

// fullCluster starts janusd in a cluster that has many Transactions which have ended. They
// are copies of one that janusd has run, status and all.
func (s *stage) fullCluster(ctx context.Context, out io.Writer) error {
	if s.stored == 0 {
		return nil
	}
	progress("making %d finished Transactions", s.stored)
	namespace, err := s.namespace(ctx, each)
	if err != nil {
		return err
	}
	text := manifest(namespace, "first", 0, each, "stored", "")
	if err := s.transact(ctx, namespace, api.PhaseCommitted, text); err != nil {
		return err
	}
	s.janusd.stop()
	s.janusd = nil
	if err := s.copies(ctx, namespace, text); err != nil {
		return err
	}
	progress("starting janusd among them")
	if s.janusd, err = s.startJanusd(ctx); err != nil {
		return err
	}
	// What it does after it has said that it is ready counts too.
	if err := s.transact(ctx, namespace, api.PhaseCommitted, manifest(namespace, "last", 0, each, "last", "")); err != nil {
		return err
	}
	is, err := s.janusd.used()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n### %d finished Transactions of %d changes\n\njanusd is ready %.1f s after its start, and has taken %d MiB of memory at most.\n",
		s.stored, each, s.janusd.ready.Seconds(), is.peak>>20)
	return err
}

// copies makes copies of a Transaction that has ended, an hour ago: a janusd that is started
// looks at those of the last ten minutes once more, which is another measurement.
func (s *stage) copies(ctx context.Context, namespace, text string) error {
	client := s.client.Dynamic.Resource(api.Resource).Namespace(namespace)
	ended, err := client.Get(ctx, "first", metav1.GetOptions{})
	if err != nil {
		return err
	}
	content, _ := ended.Object["status"].(map[string]any)
	for _, field := range []string{"startTime", "completionTime"} {
		content[field] = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for n := range s.stored {
		group.Go(func() error {
			obj := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
				return err
			}
			obj.SetName(fmt.Sprint("copy-", n))
			if _, err := client.Create(ctx, obj, metav1.CreateOptions{}); err != nil {
				return err
			}
			status, err := yaml.Marshal(map[string]any{"status": content})
			if err != nil {
				return err
			}
			if status, err = yaml.YAMLToJSON(status); err != nil {
				return err
			}
			_, err = client.Patch(ctx, obj.GetName(), types.MergePatchType, status, metav1.PatchOptions{}, "status")
			return err
		})
	}
	return group.Wait()
}
