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
