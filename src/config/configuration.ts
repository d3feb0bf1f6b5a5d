import { availableParallelism } from 'node:os';
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
export type HedgeConfiguration = NonNullable<RouteConfiguration['hedge']>;
export type ClientConfiguration = Configuration['clients'][number];
export type RecoveryPolicy = Configuration['recovery'];
export type WebhookConfiguration = Configuration['webhooks'][number];
export type TracingConfiguration = Configuration['tracing'];
export type BreakerLimits = Configuration['breaker'];
export type ClockLimits = Configuration['clocks'];
export type Limits = Configuration['limits'];

/** Where clients put the credential that says who they are. */
export const CLIENT_CREDENTIALS = ['authorization', 'api-key', 'x-api-key', 'x-goog-api-key'] as const;
/** The token of a gateway before the provider: says who its client is where nothing else does. */
export const GATEWAY_CREDENTIAL = 'cf-aig-authorization';

/** Those headers of an account with a provider that are secret. */
export const SECRET_HEADERS: readonly string[] = [
  ...CLIENT_CREDENTIALS,
  GATEWAY_CREDENTIAL,
  'x-amz-security-token',
];

/** Headers of a client's account with its provider. Where an upstream has a key of the operator's, none of them reaches it. */
export const CREDENTIAL_HEADERS: readonly string[] = [
  ...SECRET_HEADERS,
  'openai-organization',
  'openai-project',
];

/** Settings that bring a key for every request, of which an upstream has one at most. */
export const KEY_SETTINGS = ['api_key_file', 'api_key_command', 'api_key'] as const;

/** Where the key of the operator's comes from with which it is asked, and never with one of a client; `undefined` where there is none. */
export function keySettingOf(upstream: UpstreamKey): keyof UpstreamKey | undefined {
  const setting = KEY_SETTINGS.find((name) => upstream[name] !== undefined);
  if (setting !== undefined) return setting;
  return Object.keys(upstream.headers ?? {}).some(isClientCredential) ? 'headers' : undefined;
}

type UpstreamKey = Pick<UpstreamConfiguration, (typeof KEY_SETTINGS)[number] | 'headers'>;

/** It is asked with a key of the operator's, and never with one of a client. */
export const isKeyed = (upstream: UpstreamKey): boolean => keySettingOf(upstream) !== undefined;

/** Its key may be another one by the next attempt. */
export const isRenewed = ({ api_key_file, api_key_command }: UpstreamKey): boolean =>
  api_key_file !== undefined || api_key_command !== undefined;

/** Where the key of an upstream is configured, or would be. */
export const keyPathOf = (name: string, upstream: UpstreamKey): string =>
  `upstreams.${name}.${keySettingOf(upstream) ?? 'api_key'}`;

/** `name` of a header, in any case. */
export const isClientCredential = (name: string): boolean =>
  (CLIENT_CREDENTIALS as readonly string[]).includes(name.toLowerCase());

/** How many processes serve. */
export const workerCount = ({ workers }: Pick<Configuration, 'workers'>): number =>
  typeof workers === 'number' ? workers : availableParallelism();

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
