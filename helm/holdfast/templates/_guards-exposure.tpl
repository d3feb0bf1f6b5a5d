{{/* The admin port has no authentication: it leaves the cluster only when that is asked for in so many words. */}}
{{- define "holdfast.guards.exposure" -}}
{{- $problems := list -}}
{{- $remedy := "it has no authentication; set admin.allowPublic=true if that is meant" -}}
{{- $public := .Values.admin.allowPublic -}}
{{- if and .Values.service.exposeAdmin (ne .Values.service.type "ClusterIP") (not $public) -}}
{{- $problems = append $problems (printf "service.exposeAdmin: a Service of type %s would show the admin port to the outside; %s" .Values.service.type $remedy) -}}
{{- end -}}
{{- if and .Values.service.exposeAdmin (eq (int .Values.service.port) (int .Values.ports.admin)) -}}
{{- $problems = append $problems "service.port: is the same as ports.admin, which service.exposeAdmin puts on the Service too; take another one" -}}
{{- end -}}
{{- $paths := list -}}
{{- if .Values.ingress.enabled -}}
{{- if not .Values.ingress.hosts -}}
{{- $problems = append $problems "ingress.hosts: is empty; name a host, like ingress.hosts[0].host=llm.example.com" -}}
{{- end -}}
{{- range .Values.ingress.hosts -}}
{{- range .paths -}}
{{- $paths = append $paths (dict "in" "ingress.hosts" "path" .path "port" .port) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if .Values.httpRoute.enabled -}}
{{- if not .Values.httpRoute.parentRefs -}}
{{- $problems = append $problems "httpRoute.parentRefs: is empty; name the Gateway, like httpRoute.parentRefs[0].name=public" -}}
{{- end -}}
{{- range .Values.httpRoute.paths -}}
{{- $paths = append $paths (dict "in" "httpRoute.paths" "path" .path "port" .port) -}}
{{- end -}}
{{- end -}}
{{- range $paths -}}
{{- if eq (default "api" .port) "admin" -}}
{{- if not $public -}}
{{- $problems = append $problems (printf "%s: %s would show the admin port to the outside; %s" .in .path $remedy) -}}
{{- else if not $.Values.service.exposeAdmin -}}
{{- $problems = append $problems (printf "%s: %s leads to the admin port, which is not on the Service; set service.exposeAdmin=true" .in .path) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
