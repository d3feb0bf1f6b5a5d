import type { Cause } from '../interrupts/interruption.ts';
import { prefixOf } from '../plans/continuation.ts';
import { Splice } from '../plans/splice.ts';
import { type Dialect, forModel } from '../proxy/dialects/dialect.ts';
import { DIALECTS } from '../proxy/dialects/registry.ts';
import type { Target } from '../proxy/run.ts';
import type { ChatRequest } from '../proxy/wires/chat-request.ts';
import { chatWire } from '../proxy/wires/chat-wire.ts';
import type { DoctorContext } from './doctor-context.ts';
import type { Finding, Findings } from './finding.ts';
import { Trial } from './trial.ts';
import { failureText } from './upstream-stream.ts';

/** What the model is made to have said already of the answer to the question of the stream. */
const SAID = 'one, two, three, four, five, six, seven, eight,';
/** How anybody would go on from there. */
const GOES_ON = /^[\s,]*nine\b/i;

/** With these, the way of asking was at fault: the same question was answered before. */
const REFUSALS: ReadonlySet<Cause> = new Set(['invalid_request', 'model_not_found']);

const NUDGE =
  'interrupted answers are asked for by a nudge, which costs a few tokens more and joins less exactly';

/** Whether the model goes on from the beginning of an answer, asked as its dialect has it. */
export async function examinePrefill(
  findings: Findings,
  context: DoctorContext,
  target: Target,
  request: ChatRequest,
  first: Trial,
): Promise<Finding> {
  const dialect = context.capabilities.dialect(target, request.model) ?? DIALECTS.generic;
  const declared = forModel(dialect.prefill, request.model);
  const figures = { dialect: dialect.name };
  if (declared === false)
    return findings.ok(
      'prefill',
      `nudge: in the dialect ${dialect.name}, ${request.model} does not go on from a prefix`,
      {
        ...figures,
        result: 'nudge',
      },
    );
  const trial = await ask(context, target, request, first, dialect);
  const { interruption } = trial;
  if (interruption && !REFUSALS.has(interruption.cause))
    return findings.warn(
      'prefill',
      `could not be tried: ${failureText(interruption)}`,
      'try again.',
      figures,
    );
  const result = resultOf(trial, dialect);
  const native = result === 'native';
  const seen = native
    ? `native: ${request.model} goes on from a prefix in the dialect ${dialect.name}`
    : `nudge: ${result}; ${NUDGE}`;
  const all = { ...figures, result: native ? 'native' : 'nudge' };
  if (native || declared === undefined) return findings.ok('prefill', seen, all);
  return findings.warn(
    'prefill',
    seen,
    `set upstreams.${target.name}.dialect to what really answers there (now ${dialect.name}); see docs/providers.md.`,
    all,
  );
}

function ask(
  context: DoctorContext,
  target: Target,
  request: ChatRequest,
  first: Trial,
  dialect: Dialect,
): Promise<Trial> {
  const { body } = chatWire.continuation({
    request,
    dialect,
    first: first.traces.events[0] ?? {},
    mode: 'prefill',
    prefix: prefixOf(SAID),
    reasoning: '',
    sealed: [],
    cutTools: [],
    tokens_left: Number(request.max_tokens ?? request.max_completion_tokens),
  });
  const { base_url } = target.upstream;
  return Trial.run(context, target, body, dialect.prefillUrl?.(base_url) ?? base_url);
}

/** `native`, or why it is not. */
function resultOf(trial: Trial, dialect: Dialect): string {
  const { interruption } = trial;
  if (interruption) return `the prefix is refused, ${failureText(interruption)}`;
  const splice = new Splice({
    mode: 'prefill',
    delivered: { text: SAID, reasoning: '' },
    prefix: prefixOf(SAID),
    echoes: forModel(dialect.echoes, '') === true,
    continuesReasoning: false,
    stops: [],
  });
  const added = [...trial.deltas.flatMap((delta) => splice.accept(delta)), ...splice.end()];
  const text = added.map((delta) => (delta.kind === 'text' ? delta.text : '')).join('');
  const isAnew = splice.rejection !== undefined || splice.seam === 'restart';
  if (isAnew) return 'the answer was begun anew';
  return GOES_ON.test(text) ? 'native' : 'what was said does not go on from the prefix';
}
