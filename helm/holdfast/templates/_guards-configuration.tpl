{{- define "holdfast.guards.configuration" -}}
{{- $problems := list -}}
{{- $config := .Values.config -}}
{{- $names := keys $config.upstreams | sortAlpha -}}
{{- if not $names -}}
{{- $problems = append $problems "config.upstreams: no provider is named; add one, like config.upstreams.openai.base_url=https://api.openai.com/v1" -}}
{{- end -}}
{{- if and (gt (len $names) 1) (not .Values.defaultUpstream) -}}
{{- $problems = append $problems (printf "defaultUpstream: there are several upstreams (%s), and Helm does not keep their order; name the one that serves what no route matches" (join ", " $names)) -}}
{{- end -}}
{{- if and .Values.defaultUpstream (not (has .Values.defaultUpstream $names)) -}}
{{- $problems = append $problems (printf "defaultUpstream: %q is not one of config.upstreams (%s)" .Values.defaultUpstream (join ", " $names)) -}}
{{- end -}}
{{- if hasKey $config "listen" -}}
{{- $problems = append $problems "config.listen: is written by the chart; set ports.api, ports.admin and bindAddress" -}}
{{- end -}}
{{- if hasKey $config "secret" -}}
{{- $problems = append $problems "config.secret: would be readable in a ConfigMap; set secret.existingSecret" -}}
{{- end -}}
{{- if hasKey (default dict $config.checkpoint) "store" -}}
{{- $problems = append $problems "config.checkpoint.store: is written by the chart; set store.type" -}}
{{- end -}}
{{- range $name, $upstream := $config.upstreams -}}
{{- if and $upstream.api_key (not (contains "${" $upstream.api_key)) -}}
{{- $problems = append $problems (printf "config.upstreams.%s.api_key: would be readable in a ConfigMap; write ${NAME} there, and put the key under NAME into the Secret that credentials.existingSecret names" $name) -}}
{{- end -}}
{{- end -}}
{{- range default (list) $config.clients -}}
{{- if and .token (not (contains "${" .token)) -}}
{{- $problems = append $problems (printf "config.clients: the token of %s would be readable in a ConfigMap; write ${NAME} there, and put the token under NAME into the Secret that credentials.existingSecret names" .name) -}}
{{- end -}}
{{- end -}}
{{- range $index, $webhook := default (list) $config.webhooks -}}
{{- if and $webhook.secret (not (contains "${" $webhook.secret)) -}}
{{- $problems = append $problems (printf "config.webhooks: the secret of webhooks[%d] would be readable in a ConfigMap; write ${NAME} there, and put the secret under NAME into the Secret that credentials.existingSecret names" $index) -}}
{{- end -}}
{{- end -}}
{{- range default (list) (dig "checkpoint" "sealing_keys" (list) $config) -}}
{{- if not (contains "${" .) -}}
{{- $problems = append $problems "config.checkpoint.sealing_keys: would be readable in a ConfigMap; write ${NAME} there, and put the key under NAME into the Secret that credentials.existingSecret names" -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := default dict (dig "tracing" "headers" dict $config) -}}
{{- if and (regexMatch "(?i)authorization|key|token|secret" $name) (not (contains "${" $value)) -}}
{{- $problems = append $problems (printf "config.tracing.headers.%s: would be readable in a ConfigMap; write ${NAME} there, and put the value under NAME into the Secret that credentials.existingSecret names" $name) -}}
{{- end -}}
{{- end -}}
{{- $owned := dict "NODE_OPTIONS" "nodeOptions" "HOLDFAST_CONFIG" "config" "HOLDFAST_HOST" "bindAddress" "HOLDFAST_LISTEN_HOST" "bindAddress" "HOLDFAST_LISTEN_ADMIN_HOST" "bindAddress" "HOLDFAST_PORT" "ports.api" "HOLDFAST_LISTEN_PORT" "ports.api" "HOLDFAST_ADMIN_PORT" "ports.admin" "HOLDFAST_LISTEN_ADMIN_PORT" "ports.admin" "HOLDFAST_STORE" "store" "HOLDFAST_CHECKPOINT_STORE" "store" "HOLDFAST_LIMITS_DRAIN_MS" "config.limits.drain_ms" -}}
{{- range $variable := .Values.extraEnv -}}
{{- with get $owned $variable.name -}}
{{- $problems = append $problems (printf "extraEnv: %s would win over what the chart writes and checks; set %s" $variable.name .) -}}
{{- end -}}
{{- end -}}
{{- if eq (int .Values.ports.api) (int .Values.ports.admin) -}}
{{- $problems = append $problems (printf "ports.admin: is %d, as ports.api is; take another one" (int .Values.ports.admin)) -}}
{{- end -}}
{{- range $value, $labels := dict "podLabels" .Values.podLabels "commonLabels" .Values.commonLabels -}}
{{- range $name, $_ := $labels -}}
{{- if regexMatch "^(app\\.kubernetes\\.io/(name|instance|component|version|managed-by)|helm\\.sh/chart|holdfast-sidecar)$" $name -}}
{{- $problems = append $problems (printf "%s: %s is written by the chart; remove it" $value $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
