import { keyPathOf } from '../config/configuration.ts';
import { suggestion } from '../config/problem.ts';
import type { Cause, Interruption } from '../interrupts/interruption.ts';
import { PROBE, probedManner } from '../plans/seam/mode.ts';
import type { ProbeAnswer } from '../proxy/run/context/probe.ts';
import { prefillBody } from '../proxy/run/next-attempt/prefill-knowledge.ts';
import type { Target } from '../proxy/upstream/target.ts';
import { forModel, questionRequest } from '../proxy/wires/common/dialect.ts';
import type { ChatRequest } from '../proxy/wires/common/request.ts';
import { DIALECTS } from '../proxy/wires/dialects/registry.ts';
import { type DoctorContext, trial } from './doctor-context.ts';
import { type Finding, type Findings, rounded_ms } from './finding.ts';

const TOKENS_MAX = 40;
const QUESTION =
  'Write the numbers from one to twenty as English words, in order, separated by ", ". Begin with "one". Write nothing else.';
/** Fewer events do not show whether something has held them back. */
const EVENTS_MIN = 4;
/** An answer that is there at once is held back by nothing. */
const WAIT_MIN_MS = 50;
/** Events that all come within this part of the wait for the first one were made before it. */
const BURST_SHARE = 0.05;
const MESSAGE_CHARACTERS_MAX = 200;

/** The request for a short answer, as clients ask for theirs. */
export const streamRequest = ({ capabilities }: DoctorContext, target: Target, model: string): ChatRequest =>
  questionRequest(model, QUESTION, TOKENS_MAX, capabilities.dialect(target, model));

/** Whether a stream comes, and comes as it is made. The answer, when it was whole. */
export async function examineStream(
  findings: Findings,
  context: DoctorContext,
  target: Target,
  request: ChatRequest,
  listed: readonly string[],
): Promise<ProbeAnswer | undefined> {
  const answer = await trial(context, target, request);
  const { interruption, usage, events, first_ms, last_ms } = answer;
  if (interruption) {
    const remedy = remedyOf(interruption, target, request.model, listed);
    findings.fail('streaming', `no whole answer of ${request.model}: ${failureText(interruption)}`, remedy);
    return undefined;
  }
  context.capabilities.recognise(target, request.model, answer.samples);
  const tokens = usage?.total_tokens;
  const figures = {
    events,
    first_ms: rounded_ms(first_ms),
    last_ms: rounded_ms(last_ms),
    ...(tokens !== undefined && { tokens }),
  };
  const cost = tokens === undefined ? '' : `, ${tokens} tokens`;
  findings.ok(
    'streaming',
    `${request.model} answers after ${Math.round(first_ms)} ms, ${events} events in ${Math.round(last_ms - first_ms)} ms${cost}`,
    figures,
  );
  examineBuffering(findings, answer);
  return answer;
}

function examineBuffering(
  findings: Findings,
  { events, batches, first_ms, last_ms, samples }: ProbeAnswer,
): Finding {
  const spread_ms = last_ms - first_ms;
  const figures = { events, batches, first_ms: rounded_ms(first_ms), spread_ms: rounded_ms(spread_ms) };
  const hasLength = samples.headers['content-length'] !== undefined;
  const isOnePiece = batches === 1 || spread_ms < BURST_SHARE * first_ms;
  const isBurst = isOnePiece && first_ms >= WAIT_MIN_MS;
  if (hasLength || (isBurst && events >= EVENTS_MIN))
    return findings.warn(
      'buffering',
      `all ${events} events came at once after ${Math.round(first_ms)} ms: a proxy in between buffers them`,
      'turn response buffering off in the proxies between here and the model (nginx: proxy_buffering off).',
      figures,
    );
  if (events < EVENTS_MIN) return findings.skip('buffering', `${events} events are too few to tell`);
  return findings.ok(
    'buffering',
    `${events} events came in ${batches} pieces over ${Math.round(spread_ms)} ms`,
    figures,
  );
}

function remedyOf(
  { cause, evidence }: Interruption,
  { name, upstream }: Target,
  model: string,
  listed: readonly string[],
): string {
  switch (cause) {
    case 'unauthorised':
      return `check ${keyPathOf(name, upstream)}, and whether it may use ${model}.`;
    case 'model_not_found':
      return `check the name of the model and the path of base_url.${suggestion(model, listed)}`;
    case 'quota':
      return 'look at the account: its quota or credit is used up.';
    case 'rate_limited':
      return 'wait and try again, or have the limit raised.';
    case 'idle_stall':
      return 'look at the status of the provider, or whether the model has to be loaded first.';
    case 'invalid_request':
      return 'ask for another model with --model; this one does not take a plain chat completion.';
    default:
      return evidence.kind === 'not_a_stream'
        ? 'check that base_url leads to the API, not to a page or a gateway that gives no streams.'
        : 'look at the status of the provider and at the proxies in between.';
  }
}

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
      `nudge: in the dialect ${dialect.name}, ${request.model} does not continue a prefix`,
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
    ? `native: ${request.model} continues a prefix in the dialect ${dialect.name}`
    : `nudge: ${result}; ${NUDGE}`;
  const all = { ...figures, result: native ? 'native' : 'nudge' };
  if (native || declared === undefined) return findings.ok('prefill', seen, all);
  return findings.warn(
    'prefill',
    seen,
    `set upstreams.${target.name}.dialect to the kind of server that answers there (now ${dialect.name}); see docs/providers.md.`,
    all,
  );
}

/** `native`, or why it is not. */
function resultOf({ interruption, text }: ProbeAnswer): string {
  if (interruption) return `the prefix is refused, ${failureText(interruption)}`;
  const manner = probedManner(text);
  return manner === 'exact' || manner === 'echo' ? 'native' : 'what was said does not continue the prefix';
}

/** The cause, the evidence and what the provider said. */
function failureText({ cause, evidence, message = '' }: Interruption): string {
  const { kind, ...details } = evidence;
  const detail = Object.values(details).join(' ');
  const words = message.slice(0, MESSAGE_CHARACTERS_MAX);
  return `${cause} (${detail === '' ? kind : `${kind} ${detail}`})${words === '' ? '' : `: ${words}`}`;
}
