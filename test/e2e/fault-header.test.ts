import { describe, expect, test } from 'vitest';
import { deploy, linesOf } from '../chaos-proxy/fault-deployment.ts';
import { Read } from '../chaos-proxy/paced-provider.ts';
import { ARGUMENTS, TEXT } from '../chaos-proxy/scripted-answer.ts';
import { DOCUMENT_READERS, STREAM_READERS } from '../chaos-proxy/sdk-readers.ts';

const NAMES = Object.keys(STREAM_READERS) as (keyof typeof STREAM_READERS)[];

describe.each(NAMES)('%s', (name) => {
  const hasCalls = name !== 'openai, completions';
  const whole = hasCalls ? TEXT + ARGUMENTS : TEXT;

  test.each([
    ['cut=reset@start', 1],
    ['cut=reset@40', 1],
    ['cut=reset@25%', 1],
    ['cut=reset@tool', hasCalls ? 1 : 0],
    ['cut=reset@end', 1],
    ['cut=close@start', 1],
    ['cut=close@40', 1],
    ['cut=close@tool', hasCalls ? 1 : 0],
    ['cut=truncate@40', 1],
    ['stall=60m@40', 1],
    ['error=overloaded@start', 1],
    ['error=overloaded@40', 1],
    ['error=rate_limit@40', 1],
    ['error=server_error@tool', hasCalls ? 1 : 0],
    ['error=429', 1],
    ['error=500', 1],
    ['error=503', 1],
    ['error=529', 1],
    ['cut=reset@40, error=503, cut=close@20', 3],
  ])('%s: the SDK reads the whole answer, and the log says what was done', async (fault, struck) => {
    const deployment = await deploy();
    const read = new Read();
    await STREAM_READERS[name](`${deployment.replica.api}/v1`, read, { 'Holdfast-Fault': fault });
    expect(read.text).toBe(whole);
    const lines = await linesOf(deployment);
    const injected = lines.filter(({ msg }) => msg === 'fault injected');
    expect(injected.map(({ attempt }) => attempt)).toEqual(Array.from({ length: struck }, (_, at) => at + 1));
    const interrupted = lines.filter(({ msg }) => msg === 'interrupted');
    // There may be more interruptions than faults: on chat completions, the provider refuses the first prefill.
    const attempts = interrupted.map(({ attempt }) => attempt);
    expect(attempts).toEqual(expect.arrayContaining(injected.map(({ attempt }) => attempt)));
    expect(lines.filter(({ msg }) => msg === 'fault missed')).toHaveLength(struck === 0 ? 1 : 0);
    expect(new Set([...injected, ...interrupted].map(({ run }) => run)).size).toBe(Math.min(struck, 1));
  });

  test('a stall that no clock minds changes nothing but the time', async () => {
    const deployment = await deploy();
    const read = new Read();
    const began_ms = performance.now();
    await STREAM_READERS[name](`${deployment.replica.api}/v1`, read, { 'Holdfast-Fault': 'stall=50ms@40' });
    expect(performance.now() - began_ms).toBeGreaterThan(49);
    expect(read.text).toBe(whole);
    expect(deployment.provider.requests).toHaveLength(1);
  });

  test('an answer without a stream is recovered as well', async () => {
    const deployment = await deploy();
    const read = new Read();
    await DOCUMENT_READERS[name](`${deployment.replica.api}/v1`, read, { 'Holdfast-Fault': 'cut=reset@40' });
    expect(read.text).toBe(TEXT);
    const injected = (await linesOf(deployment)).filter(({ msg }) => msg === 'fault injected');
    expect(injected).toEqual([expect.objectContaining({ attempt: 1, fault: 'reset', after_characters: 40 })]);
  });
});
