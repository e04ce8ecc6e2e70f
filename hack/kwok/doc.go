// Command janus-kwok is kwok, which plays the kubelets of Nodes that do not
// exist, with the stages that the development cluster wants built in: a Node
// and its heartbeat, and Pods that become Ready, complete if they belong to a
// Job, and go away when deleted, all at once.
//
//	janus-kwok stages          prints the stages, for kwok's --config
//	janus-kwok [kwok flags]    is kwok
//
// It is a module and a binary of its own because its flags and its
// dependencies differ from those of the Kubernetes components.
package main
