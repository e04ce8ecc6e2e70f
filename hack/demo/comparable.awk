# Leaves of an object, as kubectl prints it in YAML with its managedFields, what
# Janus answers for. Out goes what the API server and the controllers count and
# write for themselves: resourceVersion and generation, the status, and of a
# Deployment the revision number and the managedFields entry of the controller
# manager, which wrote it. With -v recreated=1 also the uid and the time of
# creation, which no object can be given back.

function flush_entry() {
  if (entry != "" && entry !~ /\n    manager: kube-controller-manager\n/) printf "%s", entry
  entry = ""
}

/^[^ ]/ { flush_entry(); managed = 0; section = $1 }
section == "status:" { next }

section == "metadata:" && /^  [^ -]/ {
  flush_entry()
  managed = ($1 == "managedFields:")
  if ($1 ~ /^(resourceVersion|generation):$/) next
  if (recreated && $1 ~ /^(uid|creationTimestamp):$/) next
}
section == "metadata:" && $1 == "deployment.kubernetes.io/revision:" { next }

managed && /^  - / { flush_entry() }
managed && !/^  managedFields:/ { entry = entry $0 "\n"; next }
{ print }
END { flush_entry() }
