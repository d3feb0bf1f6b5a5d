{{- define "holdfast.guards.metrics" -}}
{{- $problems := list -}}
{{- $metrics := .Values.metrics -}}
{{- if and $metrics.podMonitor.enabled $metrics.serviceMonitor.enabled -}}
{{- $problems = append $problems "metrics: podMonitor and serviceMonitor are both enabled, so that everything would be counted twice; keep one of them" -}}
{{- end -}}
{{- $monitored := or $metrics.podMonitor.enabled $metrics.serviceMonitor.enabled -}}
{{- $closed := and (eq .Values.mode "gateway") .Values.networkPolicy.enabled (not .Values.networkPolicy.adminFrom) -}}
{{- if and $monitored $closed -}}
{{- $problems = append $problems "networkPolicy.adminFrom: is empty, so that Prometheus cannot reach what a monitor tells it to scrape; name its namespace there, or set networkPolicy.enabled=false" -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
