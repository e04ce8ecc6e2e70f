package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
)

func newWait(s *session) *cobra.Command {
	wait := waits{wait: true}
	cmd := &cobra.Command{
		Use: "wait NAME", Short: "Wait until a Transaction has ended, and show what it does", Args: cobra.ExactArgs(1), ValidArgsFunction: s.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := s.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return wait.end(cmd.Context(), s, t)
		},
	}
	cmd.Flags().Var(&wait.limit, "timeout", "how long to wait; without it as long as it takes")
	wait.out.addTo(cmd)
	return cmd
}

// edit is what can be changed of the spec of a Transaction.
type edit struct {
	Suspend *bool             `json:"suspend,omitempty"`
	Cancel  *api.CancelPolicy `json:"cancel,omitempty"`
}

// apply edits the spec of a Transaction.
func (s *session) apply(cmd *cobra.Command, t *api.Transaction, e edit) (*api.Transaction, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": t.UID}, "spec": e})
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	return s.patch(cmd, t, body)
}

// patch writes a Transaction, if it is still the same.
func (s *session) patch(cmd *cobra.Command, t *api.Transaction, body []byte) (*api.Transaction, error) {
	client, err := s.transactions(t.Namespace)
	if err != nil {
		return nil, err
	}
	u, err := client.Patch(cmd.Context(), t.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		return nil, explain(fmt.Sprintf("edit Transaction %s/%s", t.Namespace, t.Name), err)
	}
	return typed(u)
}

func newCancel(s *session) *cobra.Command {
	var stop bool
	var wait waits
	cmd := &cobra.Command{
		Use: "cancel NAME", Short: "End a Transaction before all of its changes are made", Args: cobra.ExactArgs(1), ValidArgsFunction: s.names,
		Long: `End a Transaction before all of its changes are made. What has landed is rolled back; with --stop it is left as it is.
The change that is in flight is finished first. Of a Transaction that was stopped, what was left is rolled back by a further
cancel without --stop.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := s.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			how, does := api.CancelRollback, "what has landed is rolled back"
			if stop {
				how, does = api.CancelStop, "what has landed is left"
			}
			if why := tooLate(t, how); why != "" {
				return fmt.Errorf("transaction %s/%s %s", t.Namespace, t.Name, why)
			}
			if t, err = s.apply(cmd, t, edit{Cancel: &how}); err != nil {
				return err
			}
			wait.announce(s, "transaction.backup.janus.io/%s cancelled: %s", t.Name, does)
			return wait.end(cmd.Context(), s, t)
		},
	}
	cmd.Flags().BoolVar(&stop, "stop", false, "leave what has landed")
	wait.addAll(cmd)
	return cmd
}

// tooLate says why a Transaction can be cancelled no more; empty if it can.
func tooLate(t *api.Transaction, how api.CancelPolicy) string {
	switch phase := t.Status.Phase; {
	case phase == api.PhaseCommitted:
		return "is Committed; undo reverses it by another Transaction: kubectl janus undo " + t.Name + " -n " + t.Namespace
	case phase == api.PhaseFailed && t.Spec.Cancel == api.CancelStop && how == api.CancelRollback:
		return ""
	case phase.Terminal():
		return "has ended already: it is " + string(phase)
	default:
		return ""
	}
}

func newSuspend(s *session) *cobra.Command {
	return suspension(s, true, "suspend NAME", "Suspend a Transaction between two changes", "suspended once the change in flight is finished")
}

func newResume(s *session) *cobra.Command {
	return suspension(s, false, "resume NAME", "Resume a suspended Transaction", "resumed")
}

func suspension(s *session, suspend bool, use, short, done string) *cobra.Command {
	var w waits
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: s.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := s.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if t.Status.Phase.Terminal() && suspend {
				return fmt.Errorf("transaction %s/%s has ended already: it is %s", t.Namespace, t.Name, t.Status.Phase)
			}
			if t.Spec.Suspend == suspend {
				w.announce(s, "transaction.backup.janus.io/%s unchanged", t.Name)
				return w.end(cmd.Context(), s, t)
			}
			if t, err = s.apply(cmd, t, edit{Suspend: &suspend}); err != nil {
				return err
			}
			w.announce(s, "transaction.backup.janus.io/%s %s", t.Name, done)
			return w.end(cmd.Context(), s, t)
		},
	}
	w.out.addTo(cmd)
	return cmd
}
