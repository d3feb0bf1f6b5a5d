import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { banner } from '../../src/commands/banner.ts';
import { summaryText } from '../../src/commands/replica-summary.ts';
import { completeConfiguration } from '../../src/config/load.ts';
import { tryCommand } from '../../src/config/sample-requests.ts';
import { VERSION } from '../../src/lib/version.ts';
import { stateDirectory } from '../../src/server/store-directory.ts';

const URLS = { api: 'http://127.0.0.1:8080', admin: 'http://127.0.0.1:9090' };
const KEYED = { base_url: 'https://api.openai.com/v1', api_key: 'sk-secret' };
const plain = (text: string) => text;

describe('what a terminal is shown when a replica listens', () => {
  it('is where it is, where it asks and stores, and a request to try, and no secret', () => {
    const configuration = completeConfiguration({
      upstreams: { openai: KEYED, local: { base_url: 'http://127.0.0.1:11434/v1' } },
      checkpoint: { store: 'redis://default:p@ssword@redis:6379/0' },
      secret: 'a secret of the server',
    });
    expect(banner(URLS, configuration, plain)).toBe(
      [
        '',
        `holdfast ${VERSION}`,
        '',
        '  API        http://127.0.0.1:8080/v1',
        '  Admin      http://127.0.0.1:9090/metrics',
        '  Status     http://127.0.0.1:9090/',
        '  Upstreams  openai (api.openai.com), local (127.0.0.1:11434)',
        '  Store      redis://[redacted]@redis:6379/0',
        '',
        `  ${tryCommand(URLS.api, configuration)}`,
        '',
        '',
      ].join('\n'),
    );
  });

  it.each([
    ['memory', 'memory: what it has is gone when the process ends'],
    ['file:./data', resolve('data')],
    ['file', stateDirectory(process.env)],
  ])('names the place of %s', (store, shown) => {
    const configuration = completeConfiguration({ upstreams: { openai: KEYED }, checkpoint: { store } });
    expect(banner(URLS, configuration, plain)).toContain(`  Store      ${shown}\n`);
  });
});

describe('what a terminal is shown at the end', () => {
  const runs = (outcome: string, value: number) => ({ value, labels: { wire: 'messages', outcome } });
  const bucketsOf = (upstream: string, ...counts: number[]) => [
    ...counts.map((value, index) => ({
      value,
      labels: { le: [0.01, 0.5, 640, '+Inf'][index] ?? '', upstream },
    })),
    { value: counts.at(-1) ?? 0, labels: { upstream } },
  ];
  const buckets = (...counts: number[]) => bucketsOf('main', ...counts);
  const RUNS = [
    ...[runs('complete', 5), runs('recovered', 2), runs('salvaged', 1), runs('failed', 1)],
    ...[runs('rejected', 2), runs('cancelled', 1)],
  ];

  it.each([
    [[runs('complete', 1)], buckets(0, 0, 0, 0), '1 run, 0 rescued, 0 failed'],
    [RUNS, buckets(0, 2, 2, 2), '12 runs, 3 rescued, 3 failed, longest gap at most 500ms'],
    [
      RUNS,
      [...buckets(0, 2, 2, 2), ...bucketsOf('spare', 1, 1, 1, 1), ...bucketsOf('idle', 0, 0, 0, 0)],
      '12 runs, 3 rescued, 3 failed, longest gap at most 500ms',
    ],
    [RUNS, buckets(2, 2, 2, 3), '12 runs, 3 rescued, 3 failed, longest gap over 10m40s'],
  ])('%#', (ended, gaps, text) => {
    expect(summaryText(ended, gaps)).toBe(text);
  });
});
