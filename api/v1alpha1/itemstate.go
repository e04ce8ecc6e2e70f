package v1alpha1

// ItemState is where an item is.
//
// +kubebuilder:validation:Enum=Pending;Prepared;Committing;Committed;Rejected;RollingBack;RolledBack;Unresolved;Skipped
type ItemState string

const (
	// ItemPending has nothing done and nothing saved.
	ItemPending ItemState = "Pending"
	// ItemPrepared has its before-image saved.
	ItemPrepared ItemState = "Prepared"
	// ItemCommitting has its intent recorded: its change may have been sent.
	ItemCommitting ItemState = "Committing"
	// ItemCommitted has its change in effect.
	ItemCommitted ItemState = "Committed"
	// ItemRejected had its change refused; it is known not to be in effect.
	ItemRejected ItemState = "Rejected"
	// ItemRollingBack may have had its compensation sent.
	ItemRollingBack ItemState = "RollingBack"
	// ItemRolledBack has its change rolled back.
	ItemRolledBack ItemState = "RolledBack"
	// ItemUnresolved could not be rolled back.
	ItemUnresolved ItemState = "Unresolved"
	// ItemSkipped is not made, because of its when, its activation, or a change that it
	// depends on.
	ItemSkipped ItemState = "Skipped"
)
