import { expect } from 'vitest';
import type { FoldedSegment, JournalFold } from '../../src/checkpoint/journal-fold.ts';
import { chatRequest, type Simulation, type SimulationOptions, upstreamAt } from './simulate.ts';

/** Asserts that the journal attributes each part of the answer to the attempt that said it, and nothing more. */
export function assertSegments(options: SimulationOptions, run: Simulation): void {
  const { journal, stream } = run;
  const { segments } = journal;
  let end = 0;
  let attempt = 0;
  for (const segment of segments) {
    expect(segment.from).toBeGreaterThan(end);
    expect(segment.to).toBeGreaterThanOrEqual(segment.from);
    end = segment.to;
    if (segment.attempt === undefined) continue;
    expect(segment.attempt).toBeGreaterThan(attempt);
    attempt = segment.attempt;
    expect(segment.mode === 'first').toBe(segment.plan === undefined);
    expect(segment.mode === 'first').toBe(segment.cause === undefined);
  }
  const said = segments.map((segment) => saidIn(segment, journal));
  expect(said.map(({ text }) => text).join('')).toBe(stream.text);
  expect(said.map(({ reasoning }) => reasoning).join('')).toBe(stream.reasoning);
  expect(segments.map(({ characters }) => characters)).toEqual(
    said.map(({ text, refusal, reasoning, calls }) => ({
      text: text.length,
      refusal: refusal.length,
      reasoning: reasoning.length,
      calls: calls.length,
    })),
  );
  const calls = [...journal.tool_calls, ...journal.cancelled_calls];
  const spoken = calls.reduce((sum, { arguments: json }) => sum + json.length, 0);
  expect(segments.reduce((sum, { characters }) => sum + characters.calls, 0)).toBe(spoken);
  if (!run.takeover) assertAttempts(segments, options, run);
}

/** For a run on a single replica, all requests are known, and its recoveries were announced in comments and chunks. */
function assertAttempts(
  segments: readonly FoldedSegment[],
  options: SimulationOptions,
  { attempts, stream }: Simulation,
): void {
  const own = chatRequest(options.request).messages.length;
  for (const [position, { attempt = 0, upstream, mode, plan, cause }] of segments.entries()) {
    // A hedge that lost also made a request, but isn't an attempt.
    const made = options.hedge ? attempts : attempts.slice(attempt - 1, attempt);
    const asked = made.filter(({ url }) => upstreamAt(url) === upstream).map(({ body }) => body);
    expect(asked).not.toEqual([]);
    // A request to resume an existing answer has no body.
    if (mode === 'resume') expect(asked).toContain(undefined);
    else
      expect(asked.map((body) => (body?.messages.length ?? 0) - own)).toContain(
        { prefill: 1, nudge: 2 }[mode as string] ?? 0,
      );
    // A recovery before the very first content can't be announced.
    if (position > 0 && (options.events === 'chunks' || options.events === 'comments'))
      expect(stream.advisories).toContainEqual(
        expect.objectContaining({ type: 'Recovered', attempt, plan, cause, mode }),
      );
  }
}

type Said = Record<'text' | 'refusal' | 'reasoning' | 'calls', string>;

/** The content of a segment's events. */
function saidIn({ from, to }: FoldedSegment, { events }: JournalFold): Said {
  const said: Said = { text: '', refusal: '', reasoning: '', calls: '' };
  for (const delta of events.slice(from - 1, to).flatMap(({ deltas }) => deltas)) {
    if (!('text' in delta)) continue;
    said[delta.kind === 'tool_arguments' ? 'calls' : delta.kind] += delta.text;
  }
  return said;
}
