package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LockTableName is the name of the one LockTable of a namespace.
const LockTableName = "janus-locks"

// MaxLocks is how many locks a LockTable holds.
const MaxLocks = 5000

// LockTableResource is the plural under which LockTables are served.
var LockTableResource = GroupVersion.WithResource("locktables")

// LockTableKind is the kind of a LockTable.
var LockTableKind = GroupVersion.WithKind("LockTable")

// LockTable says which objects of its namespace Transactions have locked. It is read by the
// admission policy that refuses other writes to them, and written by janusd alone. There is
// one in a namespace, janus-locks, where locks are enforced.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=locktables,scope=Namespaced
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'janus-locks'",message="a namespace has one LockTable, janus-locks"
type LockTable struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// locks has the object that is locked, as group/resource/name, or resource/name for the
	// core group, and the Transaction that holds it, as namespace/name/uid.
	//
	// It is one value to server-side apply: an owner for each entry would double its size.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=5000
	Locks map[string]string `json:"locks,omitempty"`
}

// LockTableList is a list of LockTables.
//
// +kubebuilder:object:root=true
type LockTableList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LockTable `json:"items"`
}
