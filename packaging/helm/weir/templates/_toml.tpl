{{- /* weir.toml: what the chart knows, and above it what .Values.config says. */ -}}
{{- define "weir.toml" -}}
{{- include "weir.check" . -}}
{{- $host := ternary "127.0.0.1" "*" (eq .Values.mode "sidecar") -}}
{{- $known := dict "http" (dict "listen" (list (printf "*:%d" (int .Values.http.port)))) -}}
{{- $_ := set $known "limits" (dict "drain_timeout" .Values.drain.timeoutSeconds) -}}
{{- if .Values.postgres.enabled -}}
{{- $_ := set $known "postgres" (dict "listen" (list (printf "%s:%d" $host (int .Values.postgres.port)))) -}}
{{- end -}}
{{- if .Values.mysql.enabled -}}
{{- $_ := set $known "mysql" (dict "listen" (list (printf "%s:%d" $host (int .Values.mysql.port)))) -}}
{{- end -}}
{{- if .Values.tls.existingSecret -}}
{{- $files := dict "cert_file" "/run/secrets/weir-tls/tls.crt" "key_file" "/run/secrets/weir-tls/tls.key" -}}
{{- $_ := set $known "tls" (dict "client" $files) -}}
{{- end -}}
{{- include "weir.toml.table" (dict "path" "" "table" (mustMergeOverwrite $known (deepCopy .Values.config))) | trim -}}
{{- end }}

{{- /* A table and those inside it. .path: its name, with a dot behind it; empty at the top. */ -}}
{{- define "weir.toml.table" -}}
{{- $path := .path -}}
{{- range $key, $value := .table }}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value)) }}
{{ $key | toJson }} = {{ include "weir.toml.value" $value }}
{{- end }}
{{- end }}
{{- range $key, $value := .table }}
{{- if kindIs "map" $value }}
{{- $name := printf "%s%s" $path ($key | toJson) }}
{{ printf "\n[%s]" $name }}
{{- include "weir.toml.table" (dict "path" (printf "%s." $name) "table" $value) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* JSON's strings and truth values are TOML's. Helm knows whole numbers as floating point ones. */ -}}
{{- define "weir.toml.value" -}}
{{- if kindIs "slice" . -}}
[{{ range $index, $value := . }}{{ if $index }}, {{ end }}{{ include "weir.toml.value" $value }}{{ end }}]
{{- else if and (kindIs "float64" .) (eq . (floor .)) -}}
{{ int64 . }}
{{- else if kindIs "map" . -}}
{{ fail "config: a list may have no tables in it" }}
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end }}

{{- /* What would be wrong only later, or in public. */ -}}
{{- define "weir.check" -}}
{{- $config := .Values.config -}}
{{- if not $config.databases -}}
{{- fail "config.databases: name at least one database" -}}
{{- end -}}
{{- if hasKey (default dict $config.limits) "drain_timeout" -}}
{{- fail "config.limits.drain_timeout: set drain.timeoutSeconds, which terminationGracePeriodSeconds follows" -}}
{{- end -}}
{{- if not (or .Values.postgres.enabled .Values.mysql.enabled) -}}
{{- fail "postgres.enabled and mysql.enabled are both false" -}}
{{- end -}}
{{- range $section := list "databases" "users" -}}
{{- range $name, $table := default dict (get $config $section) -}}
{{- $password := toString (default "" $table.password) -}}
{{- $url := toString (default "" $table.url) -}}
{{- if or (not (regexMatch "^(\\$\\{[^}]*\\})?$" $password)) (regexMatch "^[a-z]+://[^/@:]*:([^$@/]|\\$[^{])[^@/]*@" $url) -}}
{{- fail (printf "config.%s.%s: a password in clear text would be in a ConfigMap: use password_file with existingSecret, or ${NAME} with extraEnv" $section $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
