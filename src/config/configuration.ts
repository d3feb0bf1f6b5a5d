import { availableParallelism } from 'node:os';
import type { FromSchema } from 'json-schema-to-ts';
import { hostnameOf } from '../lib/host-name.ts';
import type { CONFIGURATION_SCHEMA } from './schema.ts';

type DeepReadonly<Value> = { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> };

/** The validated configuration, merged from flags, environment and file, with defaults filled in. */
export type Configuration = DeepReadonly<FromSchema<typeof CONFIGURATION_SCHEMA>>;

export type UpstreamConfiguration = Configuration['upstreams'][string];
export type RouteConfiguration = Configuration['routes'][number];
export type TargetConfiguration = RouteConfiguration['targets'][number];
export type CompressionConfiguration = NonNullable<RouteConfiguration['compression']>;
export type HedgeConfiguration = NonNullable<RouteConfiguration['hedge']>;
export type ClientConfiguration = Configuration['clients'][number];
export type RecoveryPolicy = Configuration['recovery'];
export type WebhookConfiguration = Configuration['webhooks'][number];
export type TracingConfiguration = Configuration['tracing'];
export type BreakerLimits = Configuration['breaker'];
export type ClockLimits = Configuration['clocks'];
export type Limits = Configuration['limits'];

/** Headers that may carry a client's credential. */
export const CLIENT_CREDENTIALS = ['authorization', 'api-key', 'x-api-key', 'x-goog-api-key'] as const;
/** The token for a gateway in front of the provider. Identifies the client if nothing else does. */
export const GATEWAY_CREDENTIAL = 'cf-aig-authorization';

/** Headers of a provider account that are secret. */
export const SECRET_HEADERS: readonly string[] = [
  ...CLIENT_CREDENTIALS,
  GATEWAY_CREDENTIAL,
  'x-amz-security-token',
];

/**
 * Headers of the client's provider account. None of them reaches an upstream for which the operator has configured a
 * key.
 */
export const CREDENTIAL_HEADERS: readonly string[] = [
  ...SECRET_HEADERS,
  'openai-organization',
  'openai-project',
];

/** Settings that provide a key for every request. An upstream has at most one of them. */
export const KEY_SETTINGS = ['api_key_file', 'api_key_command', 'api_key'] as const;

/** The setting that provides the operator's key, which replaces the client's; `undefined` if there is none. */
export function keySettingOf(upstream: UpstreamKey): keyof UpstreamKey | undefined {
  const setting = KEY_SETTINGS.find((name) => upstream[name] !== undefined);
  if (setting !== undefined) return setting;
  return Object.keys(upstream.headers ?? {}).some(isClientCredential) ? 'headers' : undefined;
}

type UpstreamKey = Pick<UpstreamConfiguration, (typeof KEY_SETTINGS)[number] | 'headers'>;

/** Whether requests use the operator's key instead of the client's. */
export const isKeyed = (upstream: UpstreamKey): boolean => keySettingOf(upstream) !== undefined;

/** Whether the key may change between attempts. */
export const isRenewed = ({ api_key_file, api_key_command }: UpstreamKey): boolean =>
  api_key_file !== undefined || api_key_command !== undefined;

/** The setting that contains the upstream's key, or would contain it. */
export const keyPathOf = (name: string, upstream: UpstreamKey): string =>
  `upstreams.${name}.${keySettingOf(upstream) ?? 'api_key'}`;

/** `name`: of a header, in any case. */
export const isClientCredential = (name: string): boolean =>
  (CLIENT_CREDENTIALS as readonly string[]).includes(name.toLowerCase());

export const workerCount = ({ workers }: Pick<Configuration, 'workers'>): number =>
  typeof workers === 'number' ? workers : availableParallelism();

const LOOPBACK = '127.0.0.1';
/** The wildcard addresses in URL notation, each with the loopback address of the same family. */
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
