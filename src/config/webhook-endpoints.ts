import { WEBHOOK_SECRET, webhookKey } from '../lib/standard-webhook.ts';
import type { Configuration, WebhookConfiguration } from './configuration.ts';
import { formatPath } from './key-path.ts';
import { ConfigurationError, type Problem } from './problem.ts';
import { readTextFile } from './text-file.ts';
import type { WebhookEvent } from './webhook-schema.ts';

/** An endpoint with its signing key. */
export interface WebhookEndpoint {
  /** Its place in the configuration: `webhooks[0]`. */
  readonly path: string;
  readonly url: string;
  readonly key: Buffer;
  readonly events: ReadonlySet<WebhookEvent>;
}

/** Faults of endpoints that the schema can't express. Never includes a secret. */
export const webhookFaults = ({ webhooks }: Pick<Configuration, 'webhooks'>): Problem[] =>
  webhooks.flatMap((webhook, index) => {
    const faults: [keyof WebhookConfiguration, string | undefined][] = [
      ['url', urlFault(webhook) ?? repetitionFault(webhook, webhooks.slice(0, index))],
      ['secret', secretFault(webhook)],
    ];
    return faults.flatMap(([key, message]) =>
      message === undefined ? [] : [{ path: formatPath(['webhooks', index, key]), message }],
    );
  });

/** The endpoints of a valid configuration. Reads their secrets. Throws {@link ConfigurationError}. */
export function readWebhooks({ webhooks }: Pick<Configuration, 'webhooks'>): readonly WebhookEndpoint[] {
  const problems: Problem[] = [];
  const endpoints = webhooks.flatMap((webhook, index) => {
    try {
      const { url, events } = webhook;
      const path = formatPath(['webhooks', index]);
      return [{ path, url, events: new Set(events), key: keyOf(webhook) }];
    } catch (error) {
      const message = (error as Error).message;
      problems.push({ path: formatPath(['webhooks', index, 'secret_file']), message });
      return [];
    }
  });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return endpoints;
}

/** Throws an `Error` that describes what is wrong with the file. */
function keyOf({ secret, secret_file = '' }: WebhookConfiguration): Buffer {
  const key = webhookKey(secret ?? readTextFile(secret_file).trim());
  if (!key) throw new Error(`${secret_file} must hold ${WEBHOOK_SECRET}.`);
  return key;
}

function urlFault({ url }: WebhookConfiguration): string | undefined {
  const { protocol, username, password, hash } = URL.parse(url) ?? {};
  if (protocol !== 'https:' && protocol !== 'http:')
    return 'must be an http: or https: URL, like https://hooks.example.com/holdfast.';
  if (username || password) return 'must not hold credentials; the signature says who asks.';
  return hash ? 'must not have a fragment.' : undefined;
}

function repetitionFault(
  { url }: WebhookConfiguration,
  before: readonly WebhookConfiguration[],
): string | undefined {
  const same = before.findIndex((other) => URL.parse(other.url)?.href === URL.parse(url)?.href);
  return same === -1 ? undefined : `is the url of webhooks[${same}], too; put all its events there.`;
}

function secretFault({ secret, secret_file }: WebhookConfiguration): string | undefined {
  if (secret === undefined)
    return secret_file === undefined
      ? `is required, unless there is a secret_file. It is ${WEBHOOK_SECRET}.`
      : undefined;
  if (secret_file !== undefined) return 'is set beside secret_file; keep one of the two.';
  return webhookKey(secret) ? undefined : `must be ${WEBHOOK_SECRET}.`;
}
