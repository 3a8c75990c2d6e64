{{- /* What the container of a pod of its own and the sidecar have in common. */ -}}
{{- define "weir.container" -}}
image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [serve, --config, /etc/weir/weir.toml]
{{- with .Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  {{- if .Values.postgres.enabled }}
  - {name: postgres, containerPort: {{ .Values.postgres.port }}, protocol: TCP}
  {{- end }}
  {{- if .Values.mysql.enabled }}
  - {name: mysql, containerPort: {{ .Values.mysql.port }}, protocol: TCP}
  {{- end }}
  - {name: weir-http, containerPort: {{ .Values.http.port }}, protocol: TCP}
# /readyz fails from SIGTERM on, /healthz does not: Weir is not to be killed while it drains. Neither depends on the databases.
startupProbe:
  httpGet: {path: /healthz, port: weir-http}
  periodSeconds: 1
  failureThreshold: 30
readinessProbe:
  httpGet: {path: /readyz, port: weir-http}
  periodSeconds: 5
  timeoutSeconds: 2
livenessProbe:
  httpGet: {path: /healthz, port: weir-http}
  periodSeconds: 10
  timeoutSeconds: 5
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - {name: weir-config, mountPath: /etc/weir, readOnly: true}
  - {name: weir-state, mountPath: /var/lib/weir}
  - {name: weir-run, mountPath: /run/weir}
  {{- if .Values.existingSecret }}
  - {name: weir-passwords, mountPath: /run/secrets/weir, readOnly: true}
  {{- end }}
  {{- if .Values.tls.existingSecret }}
  - {name: weir-tls, mountPath: /run/secrets/weir-tls, readOnly: true}
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* A pod of its own has a group (fsGroup) that may read the secrets; the pod of somebody else may have none. */ -}}
{{- define "weir.volumes" -}}
{{- $mode := ternary "0444" "0440" (eq .Values.mode "sidecar") -}}
- name: weir-config
  configMap:
    name: {{ include "weir.fullname" . }}
# The certificate that Weir makes for itself.
- name: weir-state
  emptyDir: {sizeLimit: 1Mi}
# Unix sockets.
- name: weir-run
  emptyDir: {sizeLimit: 1Mi}
{{- with .Values.existingSecret }}
- name: weir-passwords
  secret:
    secretName: {{ . }}
    defaultMode: {{ $mode }}
{{- end }}
{{- with .Values.tls.existingSecret }}
- name: weir-tls
  secret:
    secretName: {{ . }}
    defaultMode: {{ $mode }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* For another chart's pods: an entry of initContainers that runs beside the others (a sidecar; Kubernetes 1.29). It begins before them and ends after
them, so the application finds Weir ready, and Weir has no clients left when it is told to stop.

    initContainers:
      {{- include "weir.sidecar" .Subcharts.weir | nindent 6 }}
    volumes:
      {{- include "weir.sidecar.volumes" .Subcharts.weir | nindent 6 }}
*/ -}}
{{- define "weir.sidecar" -}}
{{- if ne .Values.mode "sidecar" -}}
{{- fail "weir.sidecar is included, but weir's `mode` is not sidecar" -}}
{{- end -}}
- name: weir
  restartPolicy: Always
  {{- include "weir.container" . | nindent 2 }}
{{- end }}

{{- define "weir.sidecar.volumes" -}}
{{- include "weir.volumes" . }}
{{- end }}
