{{/* The labels that every object has besides its own app.kubernetes.io/name. */}}
{{- define "janus.labels" -}}
app.kubernetes.io/part-of: janus
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.extraLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The image, by digest if one is given. */}}
{{- define "janus.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The users that the policies take for janusd: those of this release and of others, as a list of CEL. */}}
{{- define "janus.janusds" -}}
{{- $users := list -}}
{{- range prepend (.Values.policies.otherNamespaces | default list) .Release.Namespace | uniq -}}
{{- $users = append $users (printf "'system:serviceaccount:%s:janusd'" .) -}}
{{- end -}}
[{{ join ", " $users }}]
{{- end }}

{{/* Fails if something is wrong that the schema of the values cannot see. */}}
{{- define "janus.check" -}}
{{- with .Capabilities.KubeVersion -}}
{{- if and (eq .Major "1") (lt (trimSuffix "+" .Minor | int) 33) -}}
{{- fail (printf "Kubernetes 1.33 or newer is needed, for a validation rule of the CRD; this is %s" .Version) -}}
{{- end -}}
{{- end -}}
{{- $names := list -}}
{{- range .Values.namespaced -}}
{{- if has .namespace $names -}}
{{- fail (printf "namespaced: the namespace %s is named twice" .namespace) -}}
{{- end -}}
{{- $names = append $names .namespace -}}
{{- end -}}
{{- if and $names .Values.janusd.watchNamespaces -}}
{{- fail "janusd.watchNamespaces and namespaced both name namespaces: leave one of them empty" -}}
{{- end -}}
{{- $ways := compact (list (join "," $names) (join "," .Values.janusd.watchNamespaces) (.Values.janusd.namespaceSelector | default "") .Values.janusd.namespacesConfigMap) -}}
{{- if gt (len $ways) 1 -}}
{{- fail "namespaced, janusd.watchNamespaces, janusd.namespaceSelector and janusd.namespacesConfigMap all say which namespaces: leave all but one of them empty" -}}
{{- end -}}
{{- if and .Values.policies.otherNamespaces (not .Values.policies.enabled) -}}
{{- fail "policies.otherNamespaces is for the release that has the policies, and policies.enabled is false" -}}
{{- end -}}
{{- if not (or .Values.policies.enabled .Values.policies.acknowledgeNone) -}}
{{- fail "policies.enabled is false: a user who may create Transactions may then act as any ServiceAccount, unless another release of the cluster has the policies; set policies.acknowledgeNone to true if that is wanted" -}}
{{- end -}}
{{- if and .Values.metrics.certificateSecret (not .Values.metrics.secure) -}}
{{- fail "metrics.certificateSecret is for metrics.secure, which is false" -}}
{{- end -}}
{{- if and .Values.packages.enabled (or .Values.namespaced .Values.janusd.namespaceSelector .Values.janusd.namespacesConfigMap) -}}
{{- fail "packages.enabled is for a release for all namespaces, or for those in janusd.watchNamespaces" -}}
{{- end -}}
{{- with .Values.constrainedImpersonation -}}
{{- if .enabled -}}
{{- if and (eq $.Capabilities.KubeVersion.Major "1") (lt (trimSuffix "+" $.Capabilities.KubeVersion.Minor | int) 36) -}}
{{- fail (printf "constrainedImpersonation.enabled takes Kubernetes 1.36 or newer; this is %s" $.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if $.Values.enforcedLocks.enabled -}}
{{- fail "constrainedImpersonation.enabled and enforcedLocks.enabled cannot both be true: requests that pass enforced locks have a mark that constrained impersonation does not allow" -}}
{{- end -}}
{{- if $.Values.packages.enabled -}}
{{- fail "constrainedImpersonation.enabled and packages.enabled cannot both be true: what a package installs can be of any kind" -}}
{{- end -}}
{{- if and .namespaces $.Values.namespaced -}}
{{- fail "constrainedImpersonation.namespaces is for a release for all namespaces: namespaced names them already" -}}
{{- end -}}
{{- else if or .namespaces .kinds -}}
{{- fail "constrainedImpersonation.namespaces and kinds have no effect unless constrainedImpersonation.enabled is true" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not (and .Values.metrics.enabled .Values.metrics.service.enabled)) -}}
{{- fail "metrics.serviceMonitor.enabled needs metrics.enabled and metrics.service.enabled: it scrapes by the Service" -}}
{{- end -}}
{{- if and .Values.ui.enabled (not (and .Values.metrics.enabled .Values.metrics.secure)) -}}
{{- fail "ui.enabled needs metrics.enabled and metrics.secure: the page is served beside the metrics, to those who may see it" -}}
{{- end -}}
{{- if and .Values.metrics.enabled (not (or .Values.metrics.secure .Values.metrics.acknowledgeInsecure)) -}}
{{- fail "metrics.secure is false: anyone who can reach the port may then read the metrics; set metrics.acknowledgeInsecure to true if that is wanted" -}}
{{- end -}}
{{- end }}

{{/* The namespaces of `namespaced`, separated by commas. */}}
{{- define "janus.namespaces" -}}
{{- $names := list -}}
{{- range .Values.namespaced -}}
{{- $names = append $names .namespace -}}
{{- end -}}
{{ join "," $names }}
{{- end }}

{{/* The flags of janusd, as a list. */}}
{{- define "janus.args" -}}
- --leader-elect
- --shards={{ .Values.janusd.shards }}
{{- with include "janus.namespaces" . }}
- --watch-namespaces={{ . }}
{{- end }}
{{- with .Values.janusd }}
{{- range $flag := list "leaderElectLeaseDuration" "workers" "locks" "keepCompleted" "keepFailed" "revisionHistoryLimit" "beforeImagesLimit" "resync" "retryBaseDelay" "retryMaxDelay" "kubeApiQps" "kubeApiBurst" "selector" "logLevel" "logFormat" "pprofBindAddress" "tracingEndpoint" }}
{{- $value := index $.Values.janusd $flag }}
{{- if not (kindIs "invalid" $value) }}
- {{ printf "--%s=%v" (kebabcase $flag) $value | quote }}
{{- end }}
{{- end }}
{{- with .watchNamespaces }}
- --watch-namespaces={{ join "," . }}
{{- end }}
{{- with .namespaceSelector }}
- {{ printf "--watch-namespaces=label:%s" . | quote }}
{{- end }}
{{- if .namespacesConfigMap }}
- --watch-namespaces=file:/etc/janusd/namespaces/namespaces
{{- end }}
{{- with .sensitiveKinds }}
- --sensitive-kinds={{ join "," . }}
{{- end }}
{{- end }}
{{- if not .Values.metrics.enabled }}
- --metrics-bind-address=0
{{- else if ne (int .Values.metrics.port) 8443 }}
- --metrics-bind-address=:{{ .Values.metrics.port }}
{{- end }}
{{- if not .Values.metrics.secure }}
- --metrics-secure=false
{{- else if .Values.metrics.certificateSecret }}
- --metrics-cert-dir=/etc/janusd/metrics
{{- end }}
{{- if .Values.enforcedLocks.enabled }}
- --enforce-locks
{{- end }}
{{- with .Values.packages.crossplaneNamespace }}
- --crossplane-namespace={{ . }}
{{- end }}
{{- if not (kindIs "invalid" .Values.packages.historyLimit) }}
- --package-history-limit={{ .Values.packages.historyLimit }}
{{- end }}
{{- if .Values.ui.enabled }}
- --ui
{{- end }}
{{- range .Values.janusd.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
