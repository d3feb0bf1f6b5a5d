import type { Cause } from '../interrupts/interruption.ts';
import { PROBE, prefixOf, probedManner } from '../plans/seam/mode.ts';
import type { Target } from '../proxy/upstream/target.ts';
import { chatWire } from '../proxy/wires/chunks/chat-wire.ts';
import type { ChatRequest } from '../proxy/wires/common/chat-request.ts';
import { type Dialect, forModel } from '../proxy/wires/common/dialect.ts';
import { DIALECTS } from '../proxy/wires/dialects/registry.ts';
import type { DoctorContext } from './doctor-context.ts';
import type { Finding, Findings } from './finding.ts';
import { Trial } from './trial.ts';
import { failureText } from './upstream-stream.ts';

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
  const result = resultOf(trial);
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
    request: { ...request, messages: [{ role: 'user', content: PROBE.question }] },
    dialect,
    first: first.traces.events[0] ?? {},
    mode: 'prefill',
    prefix: prefixOf(PROBE.said, false),
    reasoning: '',
    sealed: [],
    cutTools: [],
    insists: false,
    tokens_left: Number(request.max_tokens ?? request.max_completion_tokens),
  });
  const { base_url } = target.upstream;
  return Trial.run(context, target, body, dialect.prefillUrl?.(base_url) ?? base_url);
}

/** `native`, or why it is not. */
function resultOf({ interruption, text }: Trial): string {
  if (interruption) return `the prefix is refused, ${failureText(interruption)}`;
  const manner = probedManner(text);
  return manner === 'exact' || manner === 'echo' ? 'native' : 'what was said does not continue the prefix';
}
