{{- define "holdfast.guards.secrets" -}}
{{- $problems := list -}}
{{- $credentials := .Values.credentials -}}
{{- if and $credentials.existingSecret $credentials.values -}}
{{- $problems = append $problems "credentials: has both existingSecret and values; keep one of them" -}}
{{- end -}}
{{- if and .Values.secret.existingSecret .Values.secret.value -}}
{{- $problems = append $problems "secret: has both existingSecret and value; keep one of them" -}}
{{- end -}}
{{- $extra := include "holdfast.extraEnvNames" . | fromJsonArray -}}
{{- $references := include "holdfast.references" . | fromJson -}}
{{- if not (or $credentials.existingSecret .Values.extraEnvFrom) -}}
{{- range $name, $optional := $references -}}
{{- if not (or $optional (hasKey $credentials.values $name) (has $name $extra)) -}}
{{- $problems = append $problems (printf "credentials: config refers to ${%s}, and nothing sets it; put it into a Secret under the key %s, and name that in credentials.existingSecret" $name $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := $credentials.values -}}
{{- if not (hasKey $references $name) -}}
{{- $problems = append $problems (printf "credentials.values.%s: nothing in config refers to ${%s}; write that where it belongs, like config.upstreams.<name>.api_key" $name $name) -}}
{{- end -}}
{{- end -}}
{{- $shared := has .Values.store.type (list "redis" "valkey") -}}
{{- $sets_secret := or .Values.secret.existingSecret .Values.secret.value (has "HOLDFAST_SECRET" $extra) .Values.extraEnvFrom -}}
{{- if and $shared (not $sets_secret) -}}
{{- $problems = append $problems (printf "secret: replicas that share a store need the same one, and store.type is %s; set secret.existingSecret" .Values.store.type) -}}
{{- end -}}
{{- if and (or .Values.secret.existingSecret .Values.secret.value) (has "HOLDFAST_SECRET" $extra) -}}
{{- $problems = append $problems "secret: is set, and so is HOLDFAST_SECRET in extraEnv; keep one of them" -}}
{{- end -}}
{{- $redis := .Values.store.redis -}}
{{- if and $redis.existingSecret $redis.url -}}
{{- $problems = append $problems "store.redis: has both existingSecret and url; keep one of them" -}}
{{- end -}}
{{- if and (eq .Values.store.type "redis") (not (or $redis.existingSecret $redis.url)) -}}
{{- $problems = append $problems "store.redis: store.type is redis, and nothing says where it is; set store.redis.existingSecret, or store.type=valkey for the one this chart brings" -}}
{{- end -}}
{{- if and (ne .Values.store.type "redis") (or $redis.existingSecret $redis.url) -}}
{{- $problems = append $problems (printf "store.redis: is not used, because store.type is %s; set store.type=redis" .Values.store.type) -}}
{{- end -}}
{{- $auth := .Values.valkey.auth -}}
{{- if and $auth.existingSecret $auth.password -}}
{{- $problems = append $problems "valkey.auth: has both existingSecret and password; keep one of them" -}}
{{- end -}}
{{- if and (eq .Values.store.type "valkey") (not (or $auth.existingSecret $auth.password)) -}}
{{- $problems = append $problems "valkey.auth: store.type is valkey, and it has no password; set valkey.auth.existingSecret" -}}
{{- end -}}
{{- if and (ne .Values.store.type "valkey") (or $auth.existingSecret $auth.password) -}}
{{- $problems = append $problems (printf "valkey.auth: is not used, because store.type is %s; set store.type=valkey" .Values.store.type) -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
