{{- define "holdfast.guards.lifecycle" -}}
{{- $problems := list -}}
{{- $drain_ms := dig "limits" "drain_ms" 25000 .Values.config -}}
{{- $grace := int .Values.terminationGracePeriodSeconds -}}
{{- $sleep := ternary 0 (int .Values.preStop.sleepSeconds) (eq .Values.mode "sidecar") -}}
{{- if kindIs "string" $drain_ms -}}
{{- $problems = append $problems "config.limits.drain_ms: must be a number here, because the chart compares it with terminationGracePeriodSeconds" -}}
{{- else if ge (int64 $drain_ms) (int64 (mul (sub $grace $sleep) 1000)) -}}
{{- $problems = append $problems (printf "config.limits.drain_ms: %d ms do not fit into the %d s that terminationGracePeriodSeconds=%d leaves after preStop.sleepSeconds=%d: the pod would be killed before its runs are handed over; lower it, or raise terminationGracePeriodSeconds" (int64 $drain_ms) (sub $grace $sleep) $grace $sleep) -}}
{{- end -}}
{{- $admin := list "admin" (toString (int .Values.ports.admin)) -}}
{{- range $name, $probe := .Values.probes -}}
{{- if not (hasKey $probe "httpGet") -}}
{{- $problems = append $problems (printf "probes.%s: has no httpGet; the image has no shell to run a command with, and an open port says nothing: ask /livez or /readyz" $name) -}}
{{- else -}}
{{- range $other := list "exec" "tcpSocket" "grpc" -}}
{{- if hasKey $probe $other -}}
{{- $problems = append $problems (printf "probes.%s.%s: a probe has one way of asking; remove it, and keep httpGet" $name $other) -}}
{{- end -}}
{{- end -}}
{{- if not (has $probe.httpGet.path (list "/livez" "/readyz")) -}}
{{- $problems = append $problems (printf "probes.%s.httpGet.path: %s says nothing about health; ask /livez or /readyz" $name (default "/" $probe.httpGet.path)) -}}
{{- end -}}
{{- $port := default "admin" $probe.httpGet.port -}}
{{- $port = ternary (toString $port) (toString (int $port)) (kindIs "string" $port) -}}
{{- if not (has $port $admin) -}}
{{- $which := ternary "is the API, which answers nothing about health" "is not the admin port" (has $port (list "api" (toString (int $.Values.ports.api)))) -}}
{{- $problems = append $problems (printf "probes.%s.httpGet.port: %s %s; write admin" $name $port $which) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
