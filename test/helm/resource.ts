/** The fields of a Kubernetes container that the tests examine. */
export interface Container {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly restartPolicy?: string;
  readonly env?: readonly EnvironmentVariable[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
  readonly resources?: object;
  readonly securityContext?: object;
  readonly startupProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly volumeMounts?: readonly object[];
}

export interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: number };
}

export interface EnvironmentVariable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly secretKeyRef: { readonly name: string; readonly key: string; readonly optional?: boolean };
  };
}

export interface PodSpec {
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes?: readonly object[];
  readonly terminationGracePeriodSeconds?: number;
  readonly [key: string]: unknown;
}

export interface PodTemplate {
  readonly metadata: {
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  };
  readonly spec: PodSpec;
}

/** A rendered resource; the shape of `spec` depends on the kind. */
export interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly data?: Readonly<Record<string, string>>;
}

/** The security context of a container with the fewest possible privileges. */
export const LEAST_RIGHTS = {
  runAsNonRoot: true,
  runAsUser: 65532,
  runAsGroup: 65532,
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

/** The only resource of this kind, or of this kind and name. Throws if there are none or several. */
export function only(resources: readonly Resource[], kind: string, name?: string): Resource {
  const found = resources.filter(
    (one) => one.kind === kind && (name ?? one.metadata.name) === one.metadata.name,
  );
  const [resource] = found;
  if (!resource || found.length > 1) throw new Error(`there are ${found.length} of ${kind} ${name ?? ''}`);
  return resource;
}

/** The resource's `spec`; the caller states its shape. */
export function specOf<Spec = Readonly<Record<string, unknown>>>({ kind, spec }: Resource): Spec {
  if (!spec) throw new Error(`${kind} has no spec`);
  return spec as Spec;
}

/** The labels by which a workload or a monitor selects its pods. */
export const selectorOf = (resource: Resource): object =>
  specOf<{ selector: { matchLabels: object } }>(resource).selector.matchLabels;

export const kindsOf = (resources: readonly Resource[]): string[] => resources.map(({ kind }) => kind).sort();

export function podOf(resources: readonly Resource[], kind = 'Deployment'): PodTemplate {
  return specOf<{ template: PodTemplate }>(only(resources, kind)).template;
}

/** The proxy's container, in a gateway or as a sidecar. */
export function proxyOf({ spec }: PodTemplate): Container {
  const found = [...(spec.initContainers ?? []), ...spec.containers].find(({ name }) => name === 'holdfast');
  if (!found) throw new Error('there is no container of the proxy');
  return found;
}

/** The configuration file that the container reads. */
export function configurationOf(resources: readonly Resource[]): string {
  const text = resources.find(({ data }) => data?.['holdfast.yaml'])?.data?.['holdfast.yaml'];
  if (text === undefined) throw new Error('there is no configuration');
  return text;
}
