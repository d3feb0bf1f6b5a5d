import type { Attributes } from '@opentelemetry/api';
import type { WireName } from '../checkpoint/journal.ts';
import type { UpstreamConfiguration } from '../config/configuration.ts';
import type { DialectName } from '../config/dialect-names.ts';
import type { Evidence, ObservedInterruption } from '../interrupts/interruption.ts';
import type { ObservedAttempt, ObservedPlan, ObservedRun } from '../proxy/run/context/run-observer.ts';
import { dialectAt } from '../proxy/wires/dialects/registry.ts';

/**
 * Attribute names from OpenTelemetry's conventions for generative AI, which are still in development, and Holdfast's
 * own. `docs/tracing.md` describes each of them.
 */
export const ATTRIBUTE = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  conversation: 'gen_ai.conversation.id',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  responseId: 'gen_ai.response.id',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  errorType: 'error.type',
  status: 'http.response.status_code',

  run: 'holdfast.run.id',
  wire: 'holdfast.wire',
  outcome: 'holdfast.outcome',
  attempts: 'holdfast.attempts',
  resumable: 'holdfast.resumable',
  epoch: 'holdfast.takeover.epoch',
  afterEvent: 'holdfast.takeover.after_event',
  attempt: 'holdfast.attempt',
  upstream: 'holdfast.upstream',
  mode: 'holdfast.mode',
  plan: 'holdfast.plan',
  why: 'holdfast.give_up',
  wait_ms: 'holdfast.wait_ms',
  gap_ms: 'holdfast.gap_ms',
  cause: 'holdfast.cause',
  phase: 'holdfast.phase',
  evidence: 'holdfast.evidence',
  evidenceDetails: 'holdfast.evidence.details',
  retryAfter_ms: 'holdfast.retry_after_ms',
  added: 'holdfast.characters_added',
  seam: 'holdfast.seam',
} as const;

export const EVENT = {
  firstContent: 'holdfast.first_content',
  interruption: 'holdfast.interruption',
  plan: 'holdfast.plan',
  seam: 'holdfast.seam',
  recovered: 'holdfast.recovered',
} as const;

const NAME_CHARACTERS_MAX = 128;
const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

/** Follows the conventions, but limits the length, because clients choose the model's name. */
export const spanName = (wire: WireName, model: string): string =>
  `${operationOf(wire)} ${model.slice(0, NAME_CHARACTERS_MAX)}`;

/** Attributes shared by the spans of a run and its attempts. `model`: the one that the span's request asks for. */
const sharedAttributes = (
  { run, wire, conversation }: ObservedRun,
  model: string,
  streamed: boolean,
): Attributes => ({
  [ATTRIBUTE.operation]: operationOf(wire),
  [ATTRIBUTE.requestModel]: model,
  [ATTRIBUTE.requestStream]: streamed,
  ...(conversation !== undefined && { [ATTRIBUTE.conversation]: conversation }),
  [ATTRIBUTE.run]: run,
  [ATTRIBUTE.wire]: wire,
});

export const runAttributes = (run: ObservedRun): Attributes => ({
  ...sharedAttributes(run, run.model, run.streamed),
  [ATTRIBUTE.resumable]: run.resumable,
  ...(run.taken_over && {
    [ATTRIBUTE.epoch]: run.taken_over.epoch,
    [ATTRIBUTE.afterEvent]: run.taken_over.after_event,
  }),
});

export const attemptAttributes = (
  run: ObservedRun,
  { attempt, upstream, mode, plan, cause, asked_model }: ObservedAttempt,
  configured: UpstreamConfiguration | undefined,
): Attributes => ({
  ...sharedAttributes(run, asked_model, true),
  [ATTRIBUTE.attempt]: attempt,
  [ATTRIBUTE.upstream]: upstream,
  [ATTRIBUTE.mode]: mode,
  ...(plan && { [ATTRIBUTE.plan]: plan }),
  ...(cause && { [ATTRIBUTE.cause]: cause }),
  ...(configured && { [ATTRIBUTE.provider]: providerName(upstream, configured), ...addressOf(configured) }),
});

function addressOf(upstream: UpstreamConfiguration): Attributes {
  const { address, port } = serverOf(upstream);
  return { [ATTRIBUTE.serverAddress]: address, [ATTRIBUTE.serverPort]: port };
}

/** Omits the path, because some providers include an account in it. */
export function serverOf({ base_url }: UpstreamConfiguration) {
  const { protocol, hostname, port } = new URL(base_url);
  return { address: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || PORTS[protocol] };
}

export const interruptionAttributes = ({
  cause,
  phase,
  evidence,
  status,
  retry_after_ms,
}: ObservedInterruption): Attributes => ({
  [ATTRIBUTE.cause]: cause,
  [ATTRIBUTE.phase]: phase,
  ...evidenceAttributes(evidence),
  ...(status !== undefined && { [ATTRIBUTE.status]: status }),
  ...(retry_after_ms !== undefined && { [ATTRIBUTE.retryAfter_ms]: retry_after_ms }),
});

/** `transport` and `ECONNRESET`, `clock` and `idle`; or `replica_lost` without details. */
function evidenceAttributes({ kind, ...details }: Evidence): Attributes {
  const words = Object.values(details).join(' ');
  return { [ATTRIBUTE.evidence]: kind, ...(words !== '' && { [ATTRIBUTE.evidenceDetails]: words }) };
}

export const planAttributes = ({ plan, why, wait_ms }: ObservedPlan): Attributes => ({
  [ATTRIBUTE.plan]: plan,
  [ATTRIBUTE.wait_ms]: Math.round(wait_ms),
  ...(why && { [ATTRIBUTE.why]: why }),
});

/** The values of `gen_ai.operation.name`. */
export const OPERATIONS = ['chat', 'text_completion'] as const;

const OPERATION_OF: Readonly<Record<WireName, (typeof OPERATIONS)[number]>> = {
  chat_completions: 'chat',
  completions: 'text_completion',
  messages: 'chat',
  responses: 'chat',
};

export const operationOf = (wire: WireName): string => OPERATION_OF[wire];

/** Providers whose name in the conventions differs from their dialect's. */
const CONVENTIONAL: Readonly<Partial<Record<DialectName, string>>> = {
  azure: 'azure.ai.openai',
  bedrock: 'aws.bedrock',
  gemini: 'gcp.gemini',
  kimi: 'moonshot_ai',
  mistral: 'mistral_ai',
  xai: 'x_ai',
};

/** The value of `gen_ai.provider.name`. For an unknown provider, the upstream's configured name. */
export function providerName(upstream: string, { dialect, base_url }: UpstreamConfiguration): string {
  const name = dialect ?? dialectAt(base_url)?.name;
  if (name === undefined || name === 'generic') return upstream;
  return CONVENTIONAL[name] ?? name;
}
