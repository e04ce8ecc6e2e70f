package main

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	api "janus.io/janus/api/v1alpha1"
)

// table prints rows of one table. Those of a watch come later and one by one, and are to
// stand below the others: the writer remembers how wide its columns are.
func (g *getting) table() printing {
	table := printers.NewTablePrinter(printers.PrintOptions{WithNamespace: g.everywhere, Wide: g.wide})
	w := printers.GetNewTabWriter(g.Out)
	return func(list []*api.Transaction, _ bool) error {
		if len(list) == 0 {
			return nil
		}
		if err := table.PrintObj(tableOf(list, time.Now()), w); err != nil {
			return fmt.Errorf("print Transactions: %w", err)
		}
		return w.Flush()
	}
}

// columns are those that kubectl get has, and kubectl get -o wide.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name"}, {Name: "Phase", Type: "string"}, {Name: "Progress", Type: "string"},
	{Name: "Ready", Type: "string"}, {Name: "Reason", Type: "string"}, {Name: "Age", Type: "string"},
	{Name: "SA", Type: "string", Priority: 1}, {Name: "Failed-Item", Type: "string", Priority: 1},
	{Name: "Duration", Type: "string", Priority: 1}, {Name: "Revision", Type: "string", Priority: 1}, {Name: "Message", Type: "string", Priority: 1},
}

func tableOf(list []*api.Transaction, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: columns}
	for _, t := range list {
		ready, reason, message := reasonOf(t)
		number := ""
		if t.Status.Revision != 0 {
			number = strconv.FormatInt(t.Status.Revision, 10)
		}
		table.Rows = append(table.Rows, metav1.TableRow{
			Object: runtime.RawExtension{Object: &metav1.PartialObjectMetadata{ObjectMeta: t.ObjectMeta}},
			Cells: []any{
				t.Name, string(phaseOf(t)), t.Status.Progress, ready, reason, duration.HumanDuration(now.Sub(t.CreationTimestamp.Time)),
				t.Spec.ServiceAccountName, t.Status.FailedItem, t.Status.Duration, number, message,
			},
		})
	}
	return table
}
