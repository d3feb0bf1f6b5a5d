{{/* Of a PodMonitor or a ServiceMonitor, with its values: what an endpoint has besides its port. */}}
{{- define "holdfast.scrape" -}}
path: /metrics
interval: {{ .interval }}
{{- if ne .scheme "http" }}
scheme: {{ .scheme }}
{{- end }}
{{- range $field := list "tlsConfig" "relabelings" "metricRelabelings" }}
{{- with get $ $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}
