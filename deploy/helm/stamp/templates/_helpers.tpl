{{/* Name of the release's objects: short enough that a pod's name is a label of DNS. */}}
{{- define "stamp.name" -}}
{{- .Release.Name | trunc 30 | trimSuffix "-" -}}
{{- end -}}

{{- define "stamp.labels" -}}
app.kubernetes.io/name: stamp
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* DNS name of a pod. Arguments: root, role, ordinal. */}}
{{- define "stamp.host" -}}
{{- $name := include "stamp.name" .root -}}
{{ $name }}-{{ .role }}-{{ .ordinal }}.{{ $name }}-{{ .role }}.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}
{{- end -}}

{{/* Addresses of the lock services, separated by commas. */}}
{{- define "stamp.lockServices" -}}
{{- $root := . -}}
{{- $all := list -}}
{{- range $i := until (int (index .Values.roles "lock-service").replicas) -}}
{{- $all = append $all (printf "%s:11100" (include "stamp.host" (dict "root" $root "role" "lock-service" "ordinal" $i))) -}}
{{- end -}}
{{- join "," $all -}}
{{- end -}}

{{/* Lock services that replicate the metadata, with their names, as each of them has to know them. */}}
{{- define "stamp.members" -}}
{{- $root := . -}}
{{- $all := list -}}
{{- range $i := until (int (index .Values.roles "lock-service").replicas) -}}
{{- $all = append $all (printf "lock-service-%d=%s:11100" $i (include "stamp.host" (dict "root" $root "role" "lock-service" "ordinal" $i))) -}}
{{- end -}}
{{- join "," $all -}}
{{- end -}}

{{/* Where the metadata are: etcd or replicated. Refuses another place than that of the release that runs: its metadata would be left there. */}}
{{- define "stamp.metadataStore" -}}
{{- $store := ternary "replicated" "etcd" (empty .Values.etcd.endpoints) -}}
{{- $replicas := int (index .Values.roles "lock-service").replicas -}}
{{- if and (eq $store "replicated") (not (has $replicas (list 3 5))) -}}
{{- fail (printf "roles.lock-service.replicas: %d, and lock services that replicate the metadata are 3 or 5 (or give etcd.endpoints)" $replicas) -}}
{{- end -}}
{{- $there := lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "%s-lock-service" (include "stamp.name" .)) -}}
{{- range dig "spec" "template" "spec" "containers" (list) ($there | default dict) -}}
{{- range .env -}}
{{- if and (eq .name "STAMP_METADATA_STORE") (ne .value $store) -}}
{{- fail (printf "etcd.endpoints: the metadata of this release are %s; %s" (ternary "in etcd" "replicated by its lock services" (eq .value "etcd")) (ternary "give its endpoints as before (to leave it: docs/guides/etcd.md)" "give none (to move them: docs/guides/etcd.md)" (eq .value "etcd"))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $store -}}
{{- end -}}

{{/* The processes as `stamp status` in a container asks them. */}}
{{- define "stamp.processes" -}}
{{- $root := . -}}
{{- $all := list -}}
{{- range $role, $settings := .Values.roles -}}
{{- range $i := until (int $settings.replicas) -}}
{{- $all = append $all (printf "%s-%d=%s:11100:11200" $role $i (include "stamp.host" (dict "root" $root "role" $role "ordinal" $i))) -}}
{{- end -}}
{{- end -}}
{{- join " " $all -}}
{{- end -}}

{{- define "stamp.secretName" -}}
{{- .Values.clusterSecret.existingSecret | default (printf "%s-cluster-secret" (include "stamp.name" .)) -}}
{{- end -}}

{{- define "stamp.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end -}}

{{- define "stamp.masterKeyName" -}}
{{- .Values.masterKey.existingSecret | default (printf "%s-master-key" (include "stamp.name" .)) -}}
{{- end -}}

{{/* What the names of the secrets with certificates begin with. */}}
{{- define "stamp.certificates" -}}
{{- .Values.tls.secretPrefix | default (printf "%s-certs" (include "stamp.name" .)) -}}
{{- end -}}

{{/* Pod that makes the certificates that are missing or end soon (files/certificates.mjs). */}}
{{- define "stamp.certificatesPod" -}}
{{- $name := include "stamp.name" . -}}
metadata:
  labels: {{- include "stamp.labels" . | nindent 4 }}
    app.kubernetes.io/component: certificates
spec:
  serviceAccountName: {{ $name }}-certificates
  automountServiceAccountToken: true
  enableServiceLinks: false
  restartPolicy: OnFailure
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    seccompProfile: { type: RuntimeDefault }
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: certificates
      image: {{ include "stamp.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command: [node, /script/certificates.mjs]
      env:
        - { name: STAMP_RELEASE, value: {{ $name | quote }} }
        - { name: STAMP_CERTS_PREFIX, value: {{ include "stamp.certificates" . | quote }} }
        - { name: STAMP_PROCESSES, value: {{ include "stamp.processes" . | quote }} }
        - { name: NODE_EXTRA_CA_CERTS, value: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt }
      resources: { requests: { cpu: 100m, memory: 128Mi }, limits: { memory: 512Mi } }
      securityContext:
        readOnlyRootFilesystem: true
        allowPrivilegeEscalation: false
        capabilities: { drop: [ALL] }
      volumeMounts:
        - { name: script, mountPath: /script, readOnly: true }
        - { name: tmp, mountPath: /tmp }
  volumes:
    - name: script
      configMap: { name: {{ $name }}-certificates }
    - name: tmp
      emptyDir: { medium: Memory, sizeLimit: 16Mi }
{{- end -}}
