{{/* The file that `holdfast serve --config` reads. Helm sorts keys, and the first upstream is special: it is written first. */}}
{{- define "holdfast.configuration" -}}
{{- $config := .Values.config -}}
{{- $preferred := include "holdfast.preferredUpstream" . -}}
listen:
  host: {{ ternary "127.0.0.1" .Values.bindAddress (eq .Values.mode "sidecar") | quote }}
  port: {{ int .Values.ports.api }}
  admin_host: {{ .Values.bindAddress | quote }}
  admin_port: {{ int .Values.ports.admin }}
upstreams:
  {{ $preferred }}:
    {{- toYaml (get $config.upstreams $preferred) | nindent 4 }}
{{- with omit $config.upstreams $preferred }}
  {{- toYaml . | nindent 2 }}
{{- end }}
checkpoint:
  store: {{ include "holdfast.store" . | quote }}
{{- with merge (dict) (default dict $config.checkpoint) (include "holdfast.boundedStore" . | fromYaml) }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with merge (dict) (default dict $config.limits) (include "holdfast.sidecarLimits" . | fromYaml) }}
limits:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with omit $config "listen" "secret" "upstreams" "checkpoint" "limits" }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What passes through, and what no route matches, goes there. */}}
{{- define "holdfast.preferredUpstream" -}}
{{- default (keys .Values.config.upstreams | sortAlpha | first) .Values.defaultUpstream -}}
{{- end -}}

{{/* An emptyDir that is full has its pod evicted, and a Valkey that is full stores nothing more: neither has room for a week. */}}
{{- define "holdfast.boundedStore" -}}
{{- if or (eq .Values.store.type "valkey") (and (eq .Values.store.type "file") (not .Values.store.file.persistence.enabled)) -}}
ttl_s: 3600
{{- end -}}
{{- end -}}

{{/* Its application has ended when a sidecar is told to go: there are no new requests to wait for. */}}
{{- define "holdfast.sidecarLimits" -}}
{{- if eq .Values.mode "sidecar" -}}
drain_delay_ms: 0
{{- end -}}
{{- end -}}

{{- define "holdfast.store" -}}
{{- $type := .Values.store.type -}}
{{- if eq $type "file" -}}
file:/data
{{- else if eq $type "redis" -}}
${HOLDFAST_REDIS_URL}
{{- else if eq $type "valkey" -}}
redis://default:${HOLDFAST_VALKEY_PASSWORD}@{{ include "holdfast.fullname" . }}-valkey:6379/0
{{- else -}}
memory
{{- end -}}
{{- end -}}

{{/* A new secret of the chart makes new pods, and so does a new configuration, unless the pods read it themselves. */}}
{{- define "holdfast.checksums" -}}
{{- if not .Values.configReload.enabled }}
holdfast/checksum-config: {{ include "holdfast.configuration" . | sha256sum }}
{{- end }}
{{- with include "holdfast.secretData" . }}
holdfast/checksum-secret: {{ sha256sum . }}
{{- end }}
{{- end -}}

{{/* What the chart's own Secret holds: the values that were given in plain text. */}}
{{- define "holdfast.secretData" -}}
{{- range $name, $value := .Values.credentials.values }}
{{ $name }}: {{ $value | toString | b64enc }}
{{- end }}
{{- with .Values.secret.value }}
HOLDFAST_SECRET: {{ b64enc . }}
{{- end }}
{{- with .Values.store.redis.url }}
HOLDFAST_REDIS_URL: {{ b64enc . }}
{{- end }}
{{- with .Values.valkey.auth.password }}
HOLDFAST_VALKEY_PASSWORD: {{ b64enc . }}
{{- end }}
{{- end -}}
