{{/* JSON: every ${NAME} of the configuration → whether it has a default there. */}}
{{- define "holdfast.references" -}}
{{- $references := dict -}}
{{- range regexFindAll "\\$?\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\\}" (toJson .Values.config) -1 -}}
{{- if not (hasPrefix "$$" .) -}}
{{- $name := regexFind "[A-Za-z_][A-Za-z0-9_]*" . -}}
{{- $optional := contains ":-" . -}}
{{- if hasKey $references $name -}}
{{- $optional = and $optional (get $references $name) -}}
{{- end -}}
{{- $_ := set $references $name $optional -}}
{{- end -}}
{{- end -}}
{{- toJson $references -}}
{{- end -}}

{{/* Names that extraEnv sets: these win. */}}
{{- define "holdfast.extraEnvNames" -}}
{{- $names := list -}}
{{- range .Values.extraEnv -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{- define "holdfast.env" -}}
{{- $own := include "holdfast.fullname" . -}}
{{- $extra := include "holdfast.extraEnvNames" . | fromJsonArray -}}
- name: NODE_OPTIONS
  value: {{ .Values.nodeOptions | quote }}
{{- if or .Values.secret.existingSecret .Values.secret.value }}
- name: HOLDFAST_SECRET
  valueFrom:
    secretKeyRef:
      name: {{ default $own .Values.secret.existingSecret }}
      key: {{ ternary .Values.secret.key "HOLDFAST_SECRET" (ne .Values.secret.existingSecret "") }}
{{- end }}
{{- if eq .Values.store.type "redis" }}
- name: HOLDFAST_REDIS_URL
  valueFrom:
    secretKeyRef:
      name: {{ default $own .Values.store.redis.existingSecret }}
      key: {{ ternary .Values.store.redis.key "HOLDFAST_REDIS_URL" (ne .Values.store.redis.existingSecret "") }}
{{- else if eq .Values.store.type "valkey" }}
{{ include "holdfast.valkeyPassword" . }}
{{- end }}
{{- range $name, $optional := include "holdfast.references" . | fromJson }}
{{- $given := hasKey $.Values.credentials.values $name }}
{{- if and (not (has $name $extra)) (or $given $.Values.credentials.existingSecret) }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ default $own $.Values.credentials.existingSecret }}
      key: {{ $name }}
      {{- if $optional }}
      optional: true
      {{- end }}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "holdfast.valkeyPassword" -}}
{{- $auth := .Values.valkey.auth -}}
- name: HOLDFAST_VALKEY_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ default (include "holdfast.fullname" .) $auth.existingSecret }}
      key: {{ ternary $auth.key "HOLDFAST_VALKEY_PASSWORD" (ne $auth.existingSecret "") }}
{{- end -}}
