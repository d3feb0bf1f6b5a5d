import type { Cause } from '../interrupts/interruption.ts';
import { PROBE, probedManner } from '../plans/seam/mode.ts';
import type { ProbeAnswer } from '../proxy/run/context/probe.ts';
import { prefillBody } from '../proxy/run/next-attempt/prefill-probe.ts';
import type { Target } from '../proxy/upstream/target.ts';
import type { ChatRequest } from '../proxy/wires/common/chat-request.ts';
import { forModel } from '../proxy/wires/common/dialect.ts';
import { DIALECTS } from '../proxy/wires/dialects/registry.ts';
import { type DoctorContext, trial } from './doctor-context.ts';
import type { Finding, Findings } from './finding.ts';
import { failureText } from './upstream-stream.ts';

/** With these, the way of asking was at fault: the same question was answered before. */
const REFUSALS: ReadonlySet<Cause> = new Set(['invalid_request', 'model_not_found']);

const NUDGE =
  'interrupted answers are asked for by a nudge, which costs a few tokens more and joins less exactly';

/** Whether the model continues the beginning of an answer, asked in the form of its dialect. */
export async function examinePrefill(
  findings: Findings,
  context: DoctorContext,
  target: Target,
  request: ChatRequest,
  first: ProbeAnswer,
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
  const tokens = Number(request.max_tokens ?? request.max_completion_tokens);
  const question = { ...request, messages: [{ role: 'user', content: PROBE.question }] };
  const body = prefillBody(question, dialect, first.samples.events[0] ?? {}, tokens);
  const answer = await trial(context, target, body, dialect.prefillUrl?.(target.upstream.base_url));
  const { interruption } = answer;
  if (interruption && !REFUSALS.has(interruption.cause))
    return findings.warn(
      'prefill',
      `could not be tried: ${failureText(interruption)}`,
      'try again.',
      figures,
    );
  const result = resultOf(answer);
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

/** `native`, or why it is not. */
function resultOf({ interruption, text }: ProbeAnswer): string {
  if (interruption) return `the prefix is refused, ${failureText(interruption)}`;
  const manner = probedManner(text);
  return manner === 'exact' || manner === 'echo' ? 'native' : 'what was said does not continue the prefix';
}
