import { expect } from 'vitest';
import type { Simulation } from '../simulate.ts';
import type { CountingProvider } from './counting-provider.ts';
import { scriptKeys, scriptText, type ToolScript } from './script.ts';

const ENDS_WHOLE: ReadonlySet<string> = new Set(['complete', 'recovered', 'replayed']);

interface ToldPart {
  readonly type: string;
  readonly result?: string;
  readonly items?: readonly object[];
}

/** Asserts that no tool ran twice, and that each holder of the answer knows the result of each tool that ran. */
export function assertToolInvariants(
  script: ToolScript,
  provider: CountingProvider,
  run: Simulation,
  body = run.client.body,
): void {
  const { stream, journal, outcome } = run;
  expect(provider.complaints).toEqual([]);
  for (const [key, times] of provider.executions) expect(times, `${key} ran ${times} times`).toBe(1);
  expect(stream.violations).toEqual([]);

  const { holdfast } = (stream.error ?? {}) as { holdfast?: { parts: ToldPart[]; retryable: boolean } };
  const stored = JSON.stringify(journal.providerTools);
  for (const key of provider.settled) {
    const result = `result of ${key}"`;
    expect(body.replaceAll('\\"', '"'), `the client has lost the ${result}`).toContain(result);
    expect(stored, `the store has lost the ${result}`).toContain(result);
    if (holdfast) expect(JSON.stringify(holdfast.parts)).toContain(result);
  }
  const told = JSON.stringify(holdfast?.parts);
  const isUnknown = [...provider.executions.keys()].some((key) => !told?.includes(`result of ${key}"`));
  if (isUnknown && holdfast) expect(holdfast.parts.map(({ result }) => result)).toContain('unknown');
  if (provider.executions.size > 0 && holdfast) expect(holdfast.retryable).toBe(false);

  if (!ENDS_WHOLE.has(outcome)) return;
  expect([...provider.executions.keys()]).toEqual(scriptKeys(script));
  expect(stream.text).toBe(scriptText(script));
  expect(stream.toolCalls).toHaveLength(script.calls ? 1 : 0);
}
