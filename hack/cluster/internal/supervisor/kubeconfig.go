package supervisor

// kubeconfig is the part of the v1 Config type of client-go's clientcmd that
// a cluster with client certificates needs. It is written as JSON, which every
// reader of YAML accepts. The certificates are inside, so that the file can be
// copied away from the data directory.
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	CurrentContext string         `json:"current-context"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
	Contexts       []namedContext `json:"contexts"`
}

type namedCluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server string `json:"server"`
		CA     []byte `json:"certificate-authority-data"`
	} `json:"cluster"`
}

type namedUser struct {
	Name string `json:"name"`
	User struct {
		Cert []byte `json:"client-certificate-data"`
		Key  []byte `json:"client-key-data"`
	} `json:"user"`
}

type namedContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
}

// newKubeconfig describes one user of the API server at the address.
func newKubeconfig(server string, ca []byte, user string, id identity) kubeconfig {
	const name = "janus-cluster"
	cluster := namedCluster{Name: name}
	cluster.Cluster.Server = server
	cluster.Cluster.CA = ca
	account := namedUser{Name: user}
	account.User.Cert = id.certPEM
	account.User.Key = id.keyPEM
	binding := namedContext{Name: name}
	binding.Context.Cluster = name
	binding.Context.User = user
	return kubeconfig{
		APIVersion:     "v1",
		Kind:           "Config",
		CurrentContext: name,
		Clusters:       []namedCluster{cluster},
		Users:          []namedUser{account},
		Contexts:       []namedContext{binding},
	}
}
