/** Manifests with one defect each, and the API server's objection to it. */
export const REFUSED: readonly { what: string; manifest: string; objection: RegExp }[] = [
  {
    what: 'a field that the kind does not have',
    manifest: pod('  terminationGracePeriod: 30'),
    objection: /terminationGracePeriod: field not declared in schema/,
  },
  {
    what: 'a value that is none of the enumerated',
    manifest: pod('  dnsPolicy: Sometimes'),
    objection: /Unsupported value: "Sometimes"/,
  },
  {
    what: 'a value of another type',
    manifest: pod('  terminationGracePeriodSeconds: soon'),
    objection: /terminationGracePeriodSeconds: expected numeric/,
  },
  {
    what: 'a field given twice',
    manifest: pod('  dnsPolicy: Default\n  dnsPolicy: Default'),
    objection: /key "dnsPolicy" already set/,
  },
  {
    what: 'a pod that is not of the restricted kind',
    manifest: pod('  hostNetwork: true'),
    objection: /violates PodSecurity "restricted:latest": host namespaces/,
  },
  {
    what: 'a workload whose pods are not of the restricted kind',
    manifest: `
apiVersion: apps/v1
kind: Deployment
metadata: { name: wrong }
spec:
  selector: { matchLabels: { app: wrong } }
  template:
    metadata: { labels: { app: wrong } }
    spec: { containers: [{ name: wrong, image: wrong }] }`,
    objection: /Deployment wrong: .*would violate PodSecurity /,
  },
  {
    what: 'an API that is on its way out',
    manifest: 'apiVersion: v1\nkind: Endpoints\nmetadata: { name: wrong }',
    objection: /v1 Endpoints is deprecated/,
  },
  {
    what: 'a kind that does not exist',
    manifest: 'apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: { name: wrong }',
    objection: /no PodDisruptionBudget of policy\/v1beta1/,
  },
  {
    what: 'a monitor with a field that the kind does not have',
    manifest: `
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: { name: wrong }
spec: { selector: {}, endpoints: [{ port: admin, every: 30s }] }`,
    objection: /every: field not declared in schema/,
  },
  {
    what: 'a rule of alarm with a duration that is none',
    manifest: `
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: { name: wrong }
spec: { groups: [{ name: wrong, rules: [{ alert: Wrong, expr: up, for: a while }] }] }`,
    objection: /spec.groups\[0\].rules\[0\].for/,
  },
  {
    what: 'a route with a path that is none',
    manifest: `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: wrong }
spec: { rules: [{ matches: [{ path: { type: Prefix, value: /v1 } }] }] }`,
    objection: /Unsupported value: "Prefix"/,
  },
];

/** A pod that is valid except for these lines of its specification. */
function pod(lines: string): string {
  return `
apiVersion: v1
kind: Pod
metadata: { name: wrong }
spec:
${lines}
  securityContext: { runAsNonRoot: true, seccompProfile: { type: RuntimeDefault } }
  containers:
    - name: wrong
      image: wrong
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: [ALL] } }`;
}
