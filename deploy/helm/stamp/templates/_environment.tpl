{{/* Settings of a process as environment. Arguments: root, role. */}}
{{- define "stamp.environment" -}}
{{- $values := .root.Values -}}
{{- $listen := $values.listenAddress -}}
STAMP_SERVICE: {{ .role }}
STAMP_LISTEN: {{ printf "%s:11100" $listen | quote }}
STAMP_HTTP: {{ printf "%s:11200" $listen | quote }}
STAMP_DATA_DIR: /data
STAMP_LOCK_SERVICE: {{ include "stamp.lockServices" .root | quote }}
STAMP_CLUSTER_SECRET_FILE: /secrets/cluster/cluster-secret
STAMP_CLUSTER_SECRET_PREVIOUS_FILE: /secrets/cluster/cluster-secret.previous
{{- if $values.tls.enabled }}
STAMP_CLUSTER_CA_FILE: /data/cluster-certs/ca.pem
STAMP_TLS: cluster
{{- end }}
{{- if eq .role "lock-service" }}
{{- $store := include "stamp.metadataStore" .root }}
STAMP_METADATA_STORE: {{ $store }}
{{- if eq $store "replicated" }}
STAMP_MEMBERS: {{ include "stamp.members" .root | quote }}
{{- else }}
STAMP_ETCD_ENDPOINTS: {{ join "," $values.etcd.endpoints | quote }}
{{- with $values.etcd.prefix }}
STAMP_ETCD_PREFIX: {{ . | quote }}
{{- end }}
{{- if $values.etcd.exclusive }}
STAMP_ETCD_COMPACT_EVERY_MS: "300000"
{{- end }}
{{- with $values.etcd.user }}
STAMP_ETCD_USER: {{ . | quote }}
STAMP_ETCD_PASSWORD_FILE: /secrets/etcd/password
{{- end }}
{{- if $values.etcd.tls }}
STAMP_ETCD_CA_FILE: /secrets/etcd/ca.crt
{{- end }}
{{- if $values.etcd.clientCertificate }}
STAMP_ETCD_CERT_FILE: /secrets/etcd/tls.crt
STAMP_ETCD_KEY_FILE: /secrets/etcd/tls.key
{{- end }}
{{- end }}
{{- end }}
{{- if and (eq .role "partition-server") $values.masterKey.enabled }}
STAMP_MASTER_KEY_FILE: /secrets/master-key/master-key
STAMP_MASTER_KEY_PREVIOUS_FILE: /secrets/master-key/master-key.previous
{{- end }}
{{- if eq .role "front-end" }}
STAMP_BLOB_LISTEN: {{ printf "%s:10000" $listen | quote }}
STAMP_QUEUE_LISTEN: {{ printf "%s:10001" $listen | quote }}
STAMP_TABLE_LISTEN: {{ printf "%s:10002" $listen | quote }}
STAMP_FILE_LISTEN: {{ printf "%s:10003" $listen | quote }}
STAMP_DFS_LISTEN: {{ printf "%s:10004" $listen | quote }}
STAMP_OWN_ACCOUNTS: "true"
STAMP_STOP_NOT_READY_MS: {{ $values.stop.notReadyMs | quote }}
STAMP_STOP_DRAIN_MS: {{ $values.stop.drainMs | quote }}
STAMP_PROCESSES: {{ include "stamp.processes" .root | quote }}
{{- with $values.doors.trustedProxies }}
STAMP_TRUSTED_PROXIES: {{ join "," . | quote }}
{{- end }}
{{- if $values.doors.tlsSecret }}
STAMP_TLS_CERT: /secrets/doors/tls.crt
STAMP_TLS_KEY: /secrets/doors/tls.key
{{- end }}
{{- end }}
{{- end -}}
