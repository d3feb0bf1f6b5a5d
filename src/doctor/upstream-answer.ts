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
/** Fewer events don't show whether something buffered them. */
const EVENTS_MIN = 4;
/** If an answer arrives at once, nothing has buffered it. */
const WAIT_MIN_MS = 50;
/** Events that all arrive within this share of the wait for the first one were generated before it arrived. */
const BURST_SHARE = 0.05;
const MESSAGE_CHARACTERS_MAX = 200;

/** The request for a short answer, like one from a client. */
export const streamRequest = ({ capabilities }: DoctorContext, target: Target, model: string): ChatRequest =>
  questionRequest(model, QUESTION, TOKENS_MAX, capabilities.dialect(target, model));

/** Tests whether an answer is streamed, and while it's generated. Returns the answer if it was complete. */
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
    findings.fail(
      'streaming',
      `no complete answer from ${request.model}: ${failureText(interruption)}`,
      remedy,
    );
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
      `all ${events} events arrived at once after ${Math.round(first_ms)} ms: a proxy in between buffers them`,
      'turn off response buffering in the proxies between here and the model (nginx: proxy_buffering off).',
      figures,
    );
  if (events < EVENTS_MIN) return findings.skip('buffering', `${events} events are too few to tell`);
  return findings.ok(
    'buffering',
    `${events} events arrived in ${batches} pieces over ${Math.round(spread_ms)} ms`,
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
      return `check the model's name and the path in base_url.${suggestion(model, listed)}`;
    case 'quota':
      return 'check the account: its quota or credit is used up.';
    case 'rate_limited':
      return 'wait and try again, or ask for a higher limit.';
    case 'idle_stall':
      return "check the provider's status, and whether the server has to load the model first.";
    case 'invalid_request':
      return "choose another model with --model; this one doesn't accept a plain chat completion.";
    default:
      return evidence.kind === 'not_a_stream'
        ? "check that base_url leads to the API, not to a page or a gateway that doesn't stream."
        : "check the provider's status and the proxies in between.";
  }
}

/** These blame the form of the request, since the same question was answered before. */
const REFUSALS: ReadonlySet<Cause> = new Set(['invalid_request', 'model_not_found']);

const NUDGE =
  'Holdfast continues interrupted answers with a nudge, which costs a few more tokens and joins less exactly';

/** Tests whether the model continues the beginning of an answer, sent in its dialect's form. */
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
      `nudge: in the dialect ${dialect.name}, ${request.model} doesn't continue a prefix`,
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
      `couldn't test this: ${failureText(interruption)}`,
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

/** `native`, or why it isn't. */
function resultOf({ interruption, text }: ProbeAnswer): string {
  if (interruption) return `the upstream refused the prefix, ${failureText(interruption)}`;
  const manner = probedManner(text);
  return manner === 'exact' || manner === 'echo' ? 'native' : "the answer doesn't continue the prefix";
}

/** The cause, the evidence and the provider's message. */
function failureText({ cause, evidence, message = '' }: Interruption): string {
  const { kind, ...details } = evidence;
  const detail = Object.values(details).join(' ');
  const words = message.slice(0, MESSAGE_CHARACTERS_MAX);
  return `${cause} (${detail === '' ? kind : `${kind} ${detail}`})${words === '' ? '' : `: ${words}`}`;
}
