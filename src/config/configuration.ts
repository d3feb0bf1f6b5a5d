import type { FromSchema } from 'json-schema-to-ts';
import { hostnameOf } from '../lib/host-name.ts';
import type { CONFIGURATION_SCHEMA } from './schema.ts';

type DeepReadonly<Value> = { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> };

/** The configuration after flags, environment and file were merged, defaults filled in and everything checked. */
export type Configuration = DeepReadonly<FromSchema<typeof CONFIGURATION_SCHEMA>>;

export type UpstreamConfiguration = Configuration['upstreams'][string];
export type RouteConfiguration = Configuration['routes'][number];
export type TargetConfiguration = RouteConfiguration['targets'][number];
export type CompressionConfiguration = NonNullable<RouteConfiguration['compression']>;
export type ClientConfiguration = Configuration['clients'][number];
export type RecoveryPolicy = Configuration['recovery'];
export type TracingConfiguration = Configuration['tracing'];
export type BreakerLimits = Configuration['breaker'];
export type ClockLimits = Configuration['clocks'];
export type Limits = Configuration['limits'];

const LOOPBACK = '127.0.0.1';
/** Every interface, in the notation that a URL has for it, and the loopback address of the same kind. */
const LOOPBACKS: Readonly<Record<string, string>> = {
  '0.0.0.0': LOOPBACK,
  '[::]': '::1',
  '[::ffff:0:0]': LOOPBACK,
};

/** The address of the admin port. It has no authentication, so only an explicit setting opens it to other machines. */
export function adminHost({ host, admin_host }: Omit<Configuration['listen'], 'cors_origins'>): string {
  if (admin_host !== undefined) return admin_host;
  return LOOPBACKS[hostnameOf(host)] ?? host;
}
