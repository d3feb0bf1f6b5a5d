import type { Attributes } from '@opentelemetry/api';
import type { WireName } from '../checkpoint/journal.ts';
import type { UpstreamConfiguration } from '../config/configuration.ts';
import type { Evidence, ObservedInterruption } from '../interrupts/interruption.ts';
import type { ObservedAttempt, ObservedPlan, ObservedRun } from '../proxy/run/context/run-observer.ts';
import { ATTRIBUTE } from './attribute-names.ts';
import { providerName } from './provider-name.ts';

const NAME_CHARACTERS_MAX = 128;
const OPERATIONS: Readonly<Partial<Record<WireName, string>>> = { completions: 'text_completion' };
const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

const operationOf = (wire: WireName): string => OPERATIONS[wire] ?? 'chat';

/** As the conventions have it, within bounds: a client can name its model as it likes. */
export const spanName = (wire: WireName, model: string): string =>
  `${operationOf(wire)} ${model.slice(0, NAME_CHARACTERS_MAX)}`;

export const runAttributes = ({
  run,
  wire,
  model,
  streamed,
  resumable,
  taken_over,
}: ObservedRun): Attributes => ({
  [ATTRIBUTE.operation]: operationOf(wire),
  [ATTRIBUTE.requestModel]: model,
  [ATTRIBUTE.requestStream]: streamed,
  [ATTRIBUTE.run]: run,
  [ATTRIBUTE.wire]: wire,
  [ATTRIBUTE.resumable]: resumable,
  ...(taken_over && {
    [ATTRIBUTE.epoch]: taken_over.epoch,
    [ATTRIBUTE.afterEvent]: taken_over.after_event,
  }),
});

export const attemptAttributes = (
  { run, wire }: ObservedRun,
  { attempt, upstream, mode, plan, cause, asked_model }: ObservedAttempt,
  configured: UpstreamConfiguration | undefined,
): Attributes => ({
  [ATTRIBUTE.operation]: operationOf(wire),
  [ATTRIBUTE.requestModel]: asked_model,
  [ATTRIBUTE.requestStream]: true,
  [ATTRIBUTE.run]: run,
  [ATTRIBUTE.wire]: wire,
  [ATTRIBUTE.attempt]: attempt,
  [ATTRIBUTE.upstream]: upstream,
  [ATTRIBUTE.mode]: mode,
  ...(plan && { [ATTRIBUTE.plan]: plan }),
  ...(cause && { [ATTRIBUTE.cause]: cause }),
  ...(configured && { [ATTRIBUTE.provider]: providerName(upstream, configured), ...addressOf(configured) }),
});

/** Of the path nothing is told: there are providers that have an account in it. */
function addressOf({ base_url }: UpstreamConfiguration): Attributes {
  const { protocol, hostname, port } = new URL(base_url);
  const address = hostname.replace(/^\[|\]$/g, '');
  return { [ATTRIBUTE.serverAddress]: address, [ATTRIBUTE.serverPort]: Number(port) || PORTS[protocol] };
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

/** `transport` and `ECONNRESET`, `clock` and `idle`; `replica_lost` alone */
function evidenceAttributes({ kind, ...details }: Evidence): Attributes {
  const words = Object.values(details).join(' ');
  return { [ATTRIBUTE.evidence]: kind, ...(words !== '' && { [ATTRIBUTE.evidenceDetails]: words }) };
}

export const planAttributes = ({ plan, why, wait_ms }: ObservedPlan): Attributes => ({
  [ATTRIBUTE.plan]: plan,
  [ATTRIBUTE.wait_ms]: Math.round(wait_ms),
  ...(why && { [ATTRIBUTE.why]: why }),
});
