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
{{- range $name := list "podMonitor" "serviceMonitor" -}}
{{- $monitor := get $metrics $name -}}
{{- if and $monitor.tlsConfig (ne $monitor.scheme "https") -}}
{{- $problems = append $problems (printf "metrics.%s.tlsConfig: is not used, because metrics.%s.scheme is %s; set https" $name $name $monitor.scheme) -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
