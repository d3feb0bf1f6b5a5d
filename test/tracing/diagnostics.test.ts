import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { diag } from '@opentelemetry/api';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/lib/log.ts';
import { systemTime } from '../../src/lib/time.ts';
import { routeDiagnostics } from '../../src/tracing/tracing.ts';

test('each warning of the library is logged once a minute, and its errors are no news', async () => {
  const lines = new PassThrough();
  let now_ms = 0;
  routeDiagnostics(createLogger('info', lines), { ...systemTime, now: () => now_ms });
  onTestFinished(() => diag.disable());

  for (now_ms = 0; now_ms < 90_000; now_ms += 1000)
    diag.warn(`Dropped ${now_ms} spans because maxQueueSize reached`);
  diag.warn('Received Partial Success response:', '{"errorMessage":"something of the receiver"}');
  diag.error('a batch was lost');
  diag.info('nothing of interest');

  const told = (await text(lines.end()))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
  expect(told).toMatchObject([
    { level: 'warn', msg: 'OpenTelemetry', words: 'Dropped 0 spans because maxQueueSize reached' },
    { level: 'warn', msg: 'OpenTelemetry', words: 'Dropped 60000 spans because maxQueueSize reached' },
    { level: 'warn', msg: 'OpenTelemetry', words: 'Received Partial Success response:' },
  ]);
});
