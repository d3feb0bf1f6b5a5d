import { describe, expect, test } from 'vitest';
import { CAUSES, type Cause, type Interruption, isPermanent } from '../../src/interrupts/interruption.ts';
import { type Allowance, decide, isBar, type Plan, type Policy } from '../../src/plans/decide.ts';
import type { Proof } from '../../src/plans/delta.ts';
import type { Transcript } from '../../src/plans/transcript.ts';
import {
  call,
  cancel,
  close,
  ran,
  reasoning,
  refusal,
  running,
  SCHEMAS,
  text,
  transcriptOf,
} from './saying.ts';

const reset: Interruption = {
  cause: 'connection_reset',
  phase: 'text',
  evidence: { kind: 'transport', code: 'ECONNRESET' },
};
const because = (cause: Cause): Interruption => ({ ...reset, cause });

const policy: Policy = { plans: ['R1', 'R2', 'R3', 'R4'], tool_proof: 1, schemas: SCHEMAS, spliceable: true };
const allowance: Allowance = { exhausted: undefined, delivered: true, tokens_left: Number.POSITIVE_INFINITY };

/** The plan on one line: which calls are settled, and which are cut. */
function planned(plan: Plan): string {
  const numbers = (calls: readonly { index: number }[]) => calls.map(({ index }) => index).join(',');
  switch (plan.kind) {
    case 'R2':
      return `R2 settle:${numbers(plan.settle)} cancel:${numbers(plan.cancel)}`;
    case 'R3':
    case 'R4':
      return `${plan.kind} cancel:${numbers(plan.cancel)}${plan.kind === 'R3' && plan.repeats ? ' repeats' : ''}`;
    case 'give_up':
      return `give up: ${plan.why}`;
    case 'finish':
      return `finish: ${plan.reason}`;
    case 'R1':
      return 'R1';
  }
}

interface Circumstances {
  readonly interruption?: Interruption;
  readonly policy?: Partial<Policy>;
  readonly allowance?: Partial<Allowance>;
}

const decided = (transcript: Transcript, circumstances: Circumstances = {}): string =>
  planned(
    decide(
      transcript,
      circumstances.interruption ?? reset,
      { ...policy, ...circumstances.policy },
      { ...allowance, ...circumstances.allowance },
    ),
  );

const WHOLE = '{"city":"Paris"}';
const HALF = '{"city":"Pa';

const nothing = transcriptOf();
const words = transcriptOf(text('Let me see.'));
const halfCall = transcriptOf(text('Let me see.'), call(0, 'weather', HALF));
const wholeCall = transcriptOf(text('Let me see.'), call(0, 'weather', WHOLE));

describe('what was said decides the plan', () => {
  test.each<[string, Transcript, string]>([
    ['nothing', nothing, 'R4 cancel:'],
    ['whitespace', transcriptOf(text(' \n\n')), 'R4 cancel:'],
    ['reasoning only', transcriptOf(reasoning('Paris?')), 'R4 cancel:'],
    ['text', words, 'R1'],
    ['reasoning and text', transcriptOf(reasoning('Paris?'), text('Paris.')), 'R1'],
    ['text and a call that was cut', halfCall, 'R3 cancel:0'],
    [
      'text and several calls that were cut',
      transcriptOf(text('So:'), call(0, 'weather', HALF), call(1, 'weather', HALF)),
      'R3 cancel:0,1',
    ],
    ['a call that was cut, and no text', transcriptOf(call(0, 'weather', HALF)), 'R4 cancel:0'],
    ['a call of which only the name came', transcriptOf(call(0, 'weather')), 'R4 cancel:0'],
    ['a whole call', wholeCall, 'R2 settle:0 cancel:'],
    ['a whole call and no text', transcriptOf(call(0, 'weather', WHOLE)), 'R2 settle:0 cancel:'],
    [
      'several calls, the last of them cut',
      transcriptOf(call(0, 'weather', WHOLE), call(1, 'weather', WHOLE), call(2, 'weather', HALF)),
      'R2 settle:0,1 cancel:2',
    ],
    [
      'several calls, the first of them not yet whole',
      transcriptOf(call(0, 'weather', HALF), call(1, 'weather', WHOLE)),
      'R2 settle:1 cancel:0',
    ],
    [
      'a call closed before, and one that was cut',
      transcriptOf(call(0, 'weather', WHOLE), close(0), call(1, 'weather', HALF)),
      'R2 settle: cancel:1',
    ],
    [
      'a call that an earlier interruption had cut',
      transcriptOf(text('So:'), call(0, 'weather', HALF), cancel(0)),
      'R1',
    ],
  ])('%s', (_, transcript, plan) => {
    expect(decided(transcript)).toBe(plan);
  });
});

describe('every cause that may pass is recovered from, every permanent one is not', () => {
  test.each(CAUSES.map((cause) => [cause]))('%s', (cause) => {
    const plan = decided(nothing, { interruption: because(cause) });
    expect(plan).toBe(isPermanent(cause) ? 'give up: permanent' : 'R4 cancel:');
  });
});

describe('settled calls win over', () => {
  const settled = 'R2 settle:0 cancel:';
  test.each<[string, Circumstances]>([
    ['an exhausted budget', { allowance: { exhausted: 'attempts' } }],
    ['replicas that are lost with it', { allowance: { exhausted: 'poisoned' } }],
    ['a request that is unknown', { allowance: { exhausted: 'request_unknown' } }],
    ['a permanent cause', { interruption: because('quota') }],
    ['a content filter', { interruption: because('content_filter') }],
    ['a context overflow', { interruption: because('context_overflow') }],
    ['a policy without R2', { policy: { plans: ['R1'] } }],
    ['output that cannot be joined', { policy: { spliceable: false } }],
    ['a spent token limit', { allowance: { tokens_left: 0 } }],
  ])('%s', (_, circumstances) => {
    expect(decided(wholeCall, circumstances)).toBe(settled);
  });

  test('all of them at once, if the call was closed before', () => {
    const transcript = transcriptOf(call(0, 'weather', WHOLE), close(0));
    const plan = decided(transcript, {
      interruption: because('unauthorised'),
      policy: { plans: [], spliceable: false },
      allowance: { exhausted: 'no_progress', tokens_left: 0 },
    });
    expect(plan).toBe('R2 settle: cancel:');
  });
});

describe('a call that the client has seen begin', () => {
  const cut = transcriptOf(text('So:'), call(0, 'weather', HALF));
  const cutAfterWhole = transcriptOf(call(0, 'weather', WHOLE), close(0), call(1, 'weather', HALF));

  test.each<[string, Transcript, Circumstances, string]>([
    ['is made again', cut, {}, 'R3 cancel: repeats'],
    [
      'is made again if nothing came before it',
      transcriptOf(call(0, 'weather', HALF)),
      {},
      'R3 cancel: repeats',
    ],
    ['is made again if a settled one came before it', cutAfterWhole, {}, 'R3 cancel: repeats'],
    [
      'is as good as closed if it is proven whole',
      transcriptOf(call(0, 'weather', WHOLE)),
      {},
      'R2 settle:0 cancel:',
    ],
    [
      'is not left as it is with an exhausted budget',
      cutAfterWhole,
      { allowance: { exhausted: 'attempts' } },
      'give up: attempts',
    ],
    [
      'is not left as it is for a permanent cause',
      cut,
      { interruption: because('quota') },
      'give up: permanent',
    ],
    [
      'is not left as it is by an overflow',
      cut,
      { interruption: because('context_overflow') },
      'give up: permanent',
    ],
    [
      'is not left as it is without R3',
      cut,
      { policy: { plans: ['R1', 'R2', 'R4'] } },
      'give up: plan_not_allowed',
    ],
    [
      'is not made again beside a tool that would run again',
      transcriptOf(ran('search'), text('So:'), call(0, 'weather', HALF)),
      { allowance: { carries: true } },
      'give up: tools_not_carried',
    ],
    ['is read on where the answer itself is', cut, { allowance: { resumable: true } }, 'R1'],
  ])('%s', (_, transcript, circumstances, plan) => {
    const live = { ...circumstances, policy: { ...circumstances.policy, isLive: true } };
    expect(decided(transcript, live)).toBe(plan);
  });
});

test('a bar is told from what was tried and failed', () => {
  expect(isBar('poisoned')).toBe(true);
  expect(isBar('request_unknown')).toBe(true);
  expect(isBar('attempts')).toBe(false);
});

describe('giving up', () => {
  test.each<[string, Transcript, Circumstances, string]>([
    ['attempts are spent', words, { allowance: { exhausted: 'attempts' } }, 'give up: attempts'],
    ['nothing new for too long', words, { allowance: { exhausted: 'no_progress' } }, 'give up: no_progress'],
    [
      'the same failure at the same place',
      nothing,
      { allowance: { exhausted: 'repeated_failure' } },
      'give up: repeated_failure',
    ],
    ['replicas are lost with it', words, { allowance: { exhausted: 'poisoned' } }, 'give up: poisoned'],
    [
      'its request is not known',
      nothing,
      { allowance: { exhausted: 'request_unknown' } },
      'give up: request_unknown',
    ],
    ['a permanent cause', words, { interruption: because('unauthorised') }, 'give up: permanent'],
    [
      'a permanent cause before a spent budget',
      words,
      { interruption: because('content_filter'), allowance: { exhausted: 'attempts' } },
      'give up: permanent',
    ],
    ['what was shown cannot be joined', words, { policy: { spliceable: false } }, 'give up: not_recoverable'],
    ['a refusal cannot be joined', transcriptOf(refusal('I cannot')), {}, 'give up: not_recoverable'],
    ['R1 is not allowed', words, { policy: { plans: ['R2', 'R3', 'R4'] } }, 'give up: plan_not_allowed'],
    ['R3 is not allowed', halfCall, { policy: { plans: ['R1', 'R2', 'R4'] } }, 'give up: plan_not_allowed'],
    ['R4 is not allowed', nothing, { policy: { plans: ['R1', 'R2', 'R3'] } }, 'give up: plan_not_allowed'],
  ])('%s', (_, transcript, circumstances, plan) => {
    expect(decided(transcript, circumstances)).toBe(plan);
  });

  test('what cannot be joined may still start anew while the client has seen nothing', () => {
    const unseen = { policy: { spliceable: false }, allowance: { delivered: false } };
    expect(decided(nothing, unseen)).toBe('R4 cancel:');
  });
});

describe('where another target may take what this one has refused', () => {
  const elsewhere = { allowance: { elsewhere: true } };
  test.each<[string, Transcript, Circumstances, string]>([
    ['before anything was said', nothing, { interruption: because('unauthorised') }, 'R4 cancel:'],
    ['a text that has become too long', words, { interruption: because('context_overflow') }, 'R1'],
    ['with a call under way', halfCall, { interruption: because('model_not_found') }, 'R3 cancel:0'],
  ])('%s', (_, transcript, circumstances, plan) => {
    expect(decided(transcript, { ...circumstances, ...elsewhere })).toBe(plan);
  });

  test('the budget holds all the same', () => {
    const allowance = { ...elsewhere.allowance, exhausted: 'attempts' } as const;
    expect(decided(words, { interruption: because('quota'), allowance })).toBe('give up: attempts');
  });
});

describe('where what is too long can be put in fewer words', () => {
  const compressible = { compressible: true };
  const overflow = because('context_overflow');
  test.each<[string, Transcript, Circumstances, string]>([
    ['nothing was said yet', nothing, {}, 'R4 cancel:'],
    ['the answer has become too long', words, {}, 'R1'],
    ['a call was under way', halfCall, {}, 'R3 cancel:0'],
    ['a settled call comes first', wholeCall, {}, 'R2 settle:0 cancel:'],
    ['the budget holds', words, { allowance: { exhausted: 'attempts' } }, 'give up: attempts'],
    ['the policy holds', words, { policy: { plans: ['R2'] } }, 'give up: plan_not_allowed'],
    ['another cause is no less final', words, { interruption: because('quota') }, 'give up: permanent'],
    [
      'nothing is said of a filter',
      nothing,
      { interruption: because('content_filter') },
      'give up: permanent',
    ],
  ])('%s', (_, transcript, circumstances, plan) => {
    const allowance = { ...compressible, ...circumstances.allowance };
    expect(decided(transcript, { interruption: overflow, ...circumstances, allowance })).toBe(plan);
  });
});

describe('where the answer itself can be come back to', () => {
  const resumable = { resumable: true };
  test.each<[string, Transcript, Circumstances, string]>([
    ['nothing is begun anew', nothing, {}, 'R1'],
    ['nothing is cut', halfCall, {}, 'R1'],
    ['nothing is settled early', wholeCall, {}, 'R1'],
    ['what cannot be joined need not be', words, { policy: { spliceable: false } }, 'R1'],
    ['the limit is the provider’s to keep', words, { allowance: { tokens_left: 0 } }, 'R1'],
    [
      'what is refused for good is not asked for',
      words,
      { interruption: because('quota') },
      'give up: permanent',
    ],
    [
      'the budget holds all the same',
      wholeCall,
      { allowance: { exhausted: 'attempts' } },
      'R2 settle:0 cancel:',
    ],
    ['it is done only where it may be', wholeCall, { policy: { plans: ['R2'] } }, 'R2 settle:0 cancel:'],
  ])('%s', (_, transcript, circumstances, plan) => {
    const allowance = { ...circumstances.allowance, ...resumable };
    expect(decided(transcript, { ...circumstances, allowance })).toBe(plan);
  });
});

describe('the answer is as long as it may be', () => {
  const overflow = { interruption: because('context_overflow') };
  test.each<[string, Transcript, Circumstances, string]>([
    ['the context overflows with what was said already', words, overflow, 'finish: length'],
    ['the context overflows with the question alone', nothing, overflow, 'give up: permanent'],
    [
      'the context overflows, and the client acts on that error alone',
      words,
      { ...overflow, policy: { failsWhenFull: true } },
      'give up: context_full',
    ],
    ['the limit is reached', words, { allowance: { tokens_left: 0 } }, 'finish: length'],
    [
      'the limit is that of such a client itself',
      words,
      { policy: { failsWhenFull: true }, allowance: { tokens_left: 0 } },
      'finish: length',
    ],
    [
      'the limit is passed, as far as can be estimated',
      words,
      { allowance: { tokens_left: -3 } },
      'finish: length',
    ],
    ['one token is left', words, { allowance: { tokens_left: 1 } }, 'R1'],
    ['no text has come of what there was', nothing, { allowance: { tokens_left: 0 } }, 'R4 cancel:'],
  ])('%s', (_, transcript, circumstances, plan) => {
    expect(decided(transcript, circumstances)).toBe(plan);
  });
});

describe('where the provider has run a tool of its own', () => {
  const carries = { allowance: { carries: true } };
  const settled = transcriptOf(ran('mcp_1'));
  const said = transcriptOf(text('Let me file that.'), ran('mcp_1'), text('It is'));
  const unknown = transcriptOf(text('Let me file that.'), ran('mcp_1'), running('mcp_2'));
  test.each<[string, Transcript, Circumstances, string]>([
    ['its result alone is worth keeping', settled, carries, 'R1'],
    ['text before and after it is gone on with', said, carries, 'R1'],
    [
      'a call that was cut beside it is asked for again without it',
      transcriptOf(ran('mcp_1'), call(0, 'weather', HALF)),
      carries,
      'R3 cancel:0',
    ],
    [
      'a call that is settled beside it is the answer',
      transcriptOf(ran('mcp_1'), call(0, 'weather', WHOLE)),
      {},
      'R2 settle:0 cancel:',
    ],
    [
      'a call that is settled is the answer although the tool has no result',
      transcriptOf(running('mcp_1'), call(0, 'weather', WHOLE)),
      {},
      'R2 settle:0 cancel:',
    ],
    ['no target takes its result back', settled, {}, 'give up: tools_not_carried'],
    ['no target takes its result back, and there is text', said, {}, 'give up: tools_not_carried'],
    ['its result has not come', transcriptOf(running('mcp_1')), carries, 'give up: tool_running'],
    ['the result of a second one has not come', unknown, carries, 'give up: tool_running'],
    [
      'its result has not come, and the budget is spent',
      unknown,
      { allowance: { carries: true, exhausted: 'attempts' } },
      'give up: tool_running',
    ],
    [
      'its result has not come, and nothing may be asked for any more',
      unknown,
      { interruption: because('context_overflow') },
      'give up: tool_running',
    ],
    [
      'its result has not come, and the provider still has the answer',
      unknown,
      { allowance: { resumable: true } },
      'R1',
    ],
    [
      'the budget is spent',
      settled,
      { allowance: { carries: true, exhausted: 'attempts' } },
      'give up: attempts',
    ],
    ['the cause is permanent', settled, { ...carries, interruption: because('quota') }, 'give up: permanent'],
    [
      'the conversation has become too long with it',
      settled,
      { ...carries, interruption: because('context_overflow') },
      'finish: length',
    ],
    ['the limit is reached', settled, { allowance: { carries: true, tokens_left: 0 } }, 'finish: length'],
    ['only R4 is allowed', settled, { ...carries, policy: { plans: ['R4'] } }, 'give up: plan_not_allowed'],
  ])('%s', (_, transcript, circumstances, plan) => {
    expect(decided(transcript, circumstances)).toBe(plan);
  });

  test('no circumstances lead to a new beginning', () => {
    for (const transcript of [settled, said, unknown, transcriptOf(running('mcp_1'))])
      for (const cause of CAUSES)
        for (const carried of [true, false])
          for (const elsewhere of [true, false]) {
            const allowance = { carries: carried, elsewhere };
            expect(decided(transcript, { interruption: because(cause), allowance })).not.toContain('R4');
          }
  });
});

describe('the least proof that settles a call', () => {
  /** Proven by its arguments (1), by what came after it (2), or by the wire (3). */
  const proofs: readonly [string, Transcript, Proof][] = [
    ['arguments that satisfy the schema', transcriptOf(call(0, 'weather', WHOLE)), 1],
    ['text after it', transcriptOf(call(0, 'weather', '{}'), text('Done.')), 2],
    ['another call after it', transcriptOf(call(0, 'weather', WHOLE), call(1, 'weather')), 2],
    ['a close', transcriptOf(call(0, 'weather', WHOLE), close(0, 3)), 3],
  ];
  const rows = proofs.flatMap(([evidence, transcript, proof]) =>
    ([1, 2, 3] as const).map((minimum) => [evidence, minimum, proof >= minimum, transcript] as const),
  );
  test.each(rows)('%s, where %i is asked for: %s', (_, tool_proof, settles, transcript) => {
    const plan = decided(transcript, { policy: { tool_proof } });
    expect(plan.startsWith('R2')).toBe(settles);
  });
});
