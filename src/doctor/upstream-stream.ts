import { suggestion } from '../config/problem.ts';
import type { Interruption } from '../interrupts/interruption.ts';
import type { ProbeAnswer } from '../proxy/run/context/probe.ts';
import type { Target } from '../proxy/upstream/target.ts';
import type { ChatRequest } from '../proxy/wires/common/chat-request.ts';
import { questionRequest } from '../proxy/wires/common/dialect.ts';
import { type DoctorContext, trial } from './doctor-context.ts';
import type { Finding, Findings } from './finding.ts';
import { rounded_ms } from './measuring.ts';

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
      `all ${events} events came at once after ${Math.round(first_ms)} ms: something in between holds them back`,
      'turn response buffering off in the proxies between here and the model (nginx: proxy_buffering off).',
      figures,
    );
  if (events < EVENTS_MIN) return findings.skip('buffering', `from ${events} events it cannot be told`);
  return findings.ok(
    'buffering',
    `${events} events came in ${batches} pieces over ${Math.round(spread_ms)} ms`,
    figures,
  );
}

/** The cause, the evidence and what the provider said. */
export function failureText({ cause, evidence, message = '' }: Interruption): string {
  const { kind, ...details } = evidence;
  const detail = Object.values(details).join(' ');
  const words = message.slice(0, MESSAGE_CHARACTERS_MAX);
  return `${cause} (${detail === '' ? kind : `${kind} ${detail}`})${words === '' ? '' : `: ${words}`}`;
}

function remedyOf(
  { cause, evidence }: Interruption,
  { name }: Target,
  model: string,
  listed: readonly string[],
): string {
  switch (cause) {
    case 'unauthorised':
      return `check upstreams.${name}.api_key, and whether it may use ${model}.`;
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
