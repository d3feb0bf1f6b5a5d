import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { completeConfiguration } from '../../src/config/load.ts';
import { ConfigurationError } from '../../src/config/problem.ts';
import { redacted, redactor } from '../../src/config/redaction.ts';
import { readWebhooks } from '../../src/config/webhook-endpoints.ts';
import { WEBHOOK_EVENTS } from '../../src/config/webhook-schema.ts';

const KEY = Buffer.alloc(32, 7);
const SECRET = `whsec_${KEY.toString('base64')}`;
const HOOK = { url: 'https://hooks.example.com/holdfast', secret: SECRET };

const configured = (...webhooks: unknown[]) =>
  completeConfiguration({ upstreams: { main: { base_url: 'https://llm.example.com/v1' } }, webhooks });

function problemsOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    throw error;
  }
  throw new Error('there is no problem');
}

function fileWith(content: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'holdfast-webhooks-')), 'secret');
  writeFileSync(path, content);
  return path;
}

it('an endpoint has a url and a secret, and gets all events unless it names some', () => {
  expect(
    completeConfiguration({ upstreams: { main: { base_url: 'https://llm.example.com/v1' } } }).webhooks,
  ).toEqual([]);
  const other = { url: 'http://127.0.0.1:9/x?a=1', secret: SECRET, events: ['task.paused'] };
  expect(readWebhooks(configured(HOOK, other))).toEqual([
    { path: 'webhooks[0]', url: HOOK.url, key: KEY, events: new Set(WEBHOOK_EVENTS) },
    { path: 'webhooks[1]', url: other.url, key: KEY, events: new Set(['task.paused']) },
  ]);
});

it('a secret may be in a file, with a line break at its end', () => {
  const secret_file = fileWith(`${SECRET}\n`);
  const [endpoint] = readWebhooks(configured({ url: HOOK.url, secret_file }));
  expect(endpoint?.key).toEqual(KEY);
});

it('a file that has no secret, or is not there, is said to be at fault', () => {
  const secret_file = fileWith('correct horse');
  const webhooks = configured(
    { url: HOOK.url, secret_file },
    { url: 'https://hooks.example.com/2', secret_file: '/nowhere/secret' },
  );
  const problems = problemsOf(() => readWebhooks(webhooks));
  expect(problems).toContain(
    `webhooks[0].secret_file: ${secret_file} must hold whsec_ and 24 to 64 random bytes`,
  );
  expect(problems).toContain('webhooks[1].secret_file: /nowhere/secret cannot be read (ENOENT).');
  expect(problems).not.toContain('horse');
});

it.each([
  ['no url', { secret: SECRET }, 'webhooks[0].url: is required.'],
  ['an address that is no URL', { ...HOOK, url: 'hooks' }, 'webhooks[0].url: must be an http: or https: URL'],
  ['a URL of files', { ...HOOK, url: 'file:///etc' }, 'webhooks[0].url: must be an http: or https: URL'],
  ['credentials in the URL', { ...HOOK, url: 'https://a:b@c' }, 'webhooks[0].url: must not hold credentials'],
  ['a fragment', { ...HOOK, url: 'https://c/#d' }, 'webhooks[0].url: must not have a fragment'],
  ['no secret', { url: HOOK.url }, 'webhooks[0].secret: is required, unless there is a secret_file.'],
  [
    'a secret that is a password',
    { ...HOOK, secret: 'horse' },
    'webhooks[0].secret: must be whsec_ and 24 to 64',
  ],
  ['a secret beside a file', { ...HOOK, secret_file: '/s' }, 'webhooks[0].secret: is set beside secret_file'],
  ['an unknown event', { ...HOOK, events: ['task.pause'] }, 'Did you mean "task.paused"?'],
  ['no events', { ...HOOK, events: [] }, 'webhooks[0].events: must have at least 1 entry'],
  ['an event twice', { ...HOOK, events: ['task.paused', 'task.paused'] }, 'the same entry twice'],
  ['an unknown key', { ...HOOK, key: 'k' }, 'webhooks[0].key: unknown key.'],
])('%s is a problem', (_what, webhook, message) => {
  const problems = problemsOf(() => configured(webhook));
  expect(problems).toContain(message);
  expect(problems).not.toContain('horse');
});

it('no two endpoints have the same url, and there are 16 at most', () => {
  expect(
    problemsOf(() => configured(HOOK, { ...HOOK, url: 'https://HOOKS.example.com:443/holdfast' })),
  ).toContain('webhooks[1].url: is the url of webhooks[0], too');
  const many = Array.from({ length: 17 }, (_, n) => ({ ...HOOK, url: `${HOOK.url}/${n}` }));
  expect(problemsOf(() => configured(...many))).toContain('webhooks: must have at most 16 entries');
});

describe('what is printed', () => {
  it('has neither secrets nor queries', () => {
    const configuration = configured({ ...HOOK, url: `${HOOK.url}?token=t-1` });
    const printed = JSON.stringify(redacted(configuration));
    expect(printed).not.toContain(SECRET);
    expect(printed).not.toContain('t-1');
    expect(printed).toContain(`${HOOK.url}?[redacted]`);
    expect(redactor(configuration, undefined)(`a ${SECRET} b`)).toBe('a [redacted] b');
  });
});
