{{- define "holdfast.guards.sidecar" -}}
{{- $problems := list -}}
{{- $values := .Values -}}
{{- if eq $values.mode "sidecar" -}}
{{- $gateway := dict
  "autoscaling.enabled" $values.autoscaling.enabled
  "ingress.enabled" $values.ingress.enabled
  "httpRoute.enabled" $values.httpRoute.enabled
  "service.exposeAdmin" $values.service.exposeAdmin
  "metrics.serviceMonitor.enabled" $values.metrics.serviceMonitor.enabled
  "store.file.persistence.enabled" $values.store.file.persistence.enabled -}}
{{- range $name, $enabled := $gateway -}}
{{- if $enabled -}}
{{- $problems = append $problems (printf "%s: is for mode=gateway; a sidecar is reached by its own pod only" $name) -}}
{{- end -}}
{{- end -}}
{{- range list "strategy" "dnsPolicy" "dnsConfig" "extraContainers" "extraInitContainers" -}}
{{- if get $values . -}}
{{- $problems = append $problems (printf "%s: is for mode=gateway; the pod belongs to the application, so set it there" .) -}}
{{- end -}}
{{- end -}}
{{- if gt (int $values.replicaCount) 1 -}}
{{- $problems = append $problems "replicaCount: is for mode=gateway; the application decides how many pods there are" -}}
{{- end -}}
{{- if eq $values.store.type "valkey" -}}
{{- $problems = append $problems "store.type: valkey is for mode=gateway; sidecars take a Redis or Valkey that is there already, with store.type=redis" -}}
{{- end -}}
{{- if and $values.sidecar.application.enabled (not $values.sidecar.application.containers) -}}
{{- $problems = append $problems "sidecar.application.containers: is empty; name the container of the application" -}}
{{- end -}}
{{- else -}}
{{- range list "application" "injection" -}}
{{- if (get $values.sidecar .).enabled -}}
{{- $problems = append $problems (printf "sidecar.%s.enabled: is for mode=sidecar; set mode=sidecar" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
