{{/* What the container of a gateway and a sidecar have in common, from `image` on. */}}
{{- define "holdfast.container" -}}
image: {{ include "holdfast.image" (dict "root" . "image" .Values.image "tag" .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [serve, --config, /etc/holdfast/holdfast.yaml]
env:
  {{- include "holdfast.env" . | nindent 2 }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
startupProbe:
  {{- include "holdfast.probe" (dict "root" . "probe" .Values.probes.startup) | nindent 2 }}
livenessProbe:
  {{- include "holdfast.probe" (dict "root" . "probe" .Values.probes.liveness) | nindent 2 }}
readinessProbe:
  {{- include "holdfast.probe" (dict "root" . "probe" .Values.probes.readiness) | nindent 2 }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
volumeMounts:
  - name: holdfast-config
    mountPath: /etc/holdfast
    readOnly: true
  {{- if eq .Values.store.type "file" }}
  - name: holdfast-data
    mountPath: /data
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The port by its number: in the pod of another application its name is another one. */}}
{{- define "holdfast.probe" -}}
{{- $httpGet := merge (dict "port" (int .root.Values.ports.admin)) .probe.httpGet -}}
{{- toYaml (merge (dict "httpGet" $httpGet) .probe) -}}
{{- end -}}

{{- define "holdfast.volumes" -}}
- name: holdfast-config
  configMap:
    name: {{ include "holdfast.fullname" . }}
{{- if eq .Values.store.type "file" }}
- name: holdfast-data
  {{- $persistence := .Values.store.file.persistence }}
  {{- if $persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ default (printf "%s-data" (include "holdfast.fullname" .)) $persistence.existingClaim }}
  {{- else }}
  emptyDir:
    sizeLimit: {{ .Values.store.file.emptyDirSizeLimit }}
  {{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
