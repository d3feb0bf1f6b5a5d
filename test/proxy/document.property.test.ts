import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { caseShare, END_ON_FAILURE, PROPERTY_MAX_MS } from '../cases.ts';
import type { Plan } from '../provider/script.ts';
import { expectShares } from '../shares.ts';
import { type Case, chatCases, onCompletions, SEED } from '../simulation/cases.ts';
import { type DocumentSimulation, simulateDocument } from '../simulation/document.ts';
import { messageIn } from '../simulation/document-reading.ts';
import { onMessages } from '../simulation/messages-cases.ts';
import { onResponses } from '../simulation/responses-cases.ts';
import type { SimulationOptions } from '../simulation/simulate.ts';

const FEWER_CASES = caseShare(5);

/** Clients that don't ask for a stream always get the usage, and nothing besides the answer. */
const asDocuments = <Same extends Case>(cases: fc.Arbitrary<Same>): fc.Arbitrary<Same> =>
  cases.map(({ options, ...rest }) => {
    const request = { ...options.request, stream_options: { include_usage: true } };
    return { ...rest, options: { ...options, events: 'none', request } } as unknown as Same;
  });

const WIRES = {
  '/v1/chat/completions': chatCases,
  '/v1/completions': onCompletions(chatCases),
  '/v1/messages': onMessages(chatCases),
  '/v1/responses': onResponses(chatCases),
};

describe('whatever is cut, wherever, a document is the whole answer or an error', {
  timeout: PROPERTY_MAX_MS,
}, () => {
  test.each(Object.entries(WIRES))(`%s (${FEWER_CASES} cases, seed ${SEED})`, async (_, cases) => {
    const outcomes: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(asDocuments(cases), async ({ plan, options }) => {
        const answered = await simulateDocument(plan, options);
        outcomes[answered.outcome] = (outcomes[answered.outcome] ?? 0) + 1;
        const wasCut = answered.run.attempts.length > 1;
        if (saysWhatAStreamDoes(answered) && wasCut && (await isThatOfTheUncutRun(plan, options, answered)))
          outcomes.as_uncut = (outcomes.as_uncut ?? 0) + 1;
      }),
      { seed: SEED, numRuns: FEWER_CASES, endOnFailure: END_ON_FAILURE },
    );
    expectShares(outcomes, FEWER_CASES, { recovered: 1 / 5, failed: 1 / 400, as_uncut: 1 / 5 });
  });
});

/** Returns whether there is an answer. */
function saysWhatAStreamDoes({ outcome, status, headers, body, run, stream }: DocumentSimulation): boolean {
  expect(run.client.body).toBe('');
  expect(run.client.destroyed).toBe(false);
  if (!stream.done) {
    expect(outcome).toBe(stream.events > 0 ? 'failed' : 'rejected');
    expect(status).toBeGreaterThanOrEqual(400);
    if (outcome === 'failed') expect(body).toMatchObject({ error: { code: expect.any(String) as string } });
    return false;
  }
  expect(stream.violations).toEqual([]);
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'holdfast-attempts': String(run.attempts.length),
  });
  const { text, reasoning: shown, kept_reasoning: reasoning = shown } = stream;
  const { refusal, toolCalls, finish, usage } = stream;
  const { usage: report, ...said } = messageIn(body);
  expect(said).toEqual({ text, reasoning, refusal, toolCalls, finish });
  // Older usage reports of messages leave out the input, which was reported at the beginning.
  if (usage) expect(report).toMatchObject(usage);
  expect(run.journal).toMatchObject({ text, seq: stream.events });
  return true;
}

/** Returns whether both say the same. If so, everything else must be the same, too. */
async function isThatOfTheUncutRun(
  { faults: _, ...plan }: Plan,
  options: SimulationOptions,
  { body }: DocumentSimulation,
): Promise<boolean> {
  const uncut = await simulateDocument(plan, options);
  expect(uncut.status).toBe(200);
  if (JSON.stringify(textsIn(body)) !== JSON.stringify(textsIn(uncut.body))) return false;
  expect(comparable(body)).toEqual(comparable(uncut.body));
  return true;
}

/** All text, part by part, because white space around a call may move to its other side. */
function textsIn(document: object): readonly unknown[] {
  const texts: unknown[] = [];
  JSON.stringify(document, (key, value: unknown) => {
    if (/^(content|text|thinking|arguments|input|name|reasoning_content)$/.test(key))
      texts.push([key, value]);
    return value;
  });
  return texts;
}

/** The usage of an attempt that was cut is lost, and so is the end of its thoughts. */
const comparable = (document: object): unknown =>
  JSON.parse(
    JSON.stringify(document, (key, value: unknown) =>
      /^(usage|encrypted_content)$/.test(key) ? undefined : value,
    )
      // The id depends on which attempt was the first to produce content.
      .replaceAll(/chatcmpl-\d+/g, 'chatcmpl-n')
      // A provider numbers the items of each attempt, so an item that one attempt lacks shifts the others.
      .replaceAll(/_chatcmpl-n_\d+/g, '_chatcmpl-n')
      .replaceAll(/"(created|created_at)":\d+/g, '"$1":0'),
  );
