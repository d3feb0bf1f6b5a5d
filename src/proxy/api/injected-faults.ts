import type { IncomingHttpHeaders } from 'node:http';
import type { Fault } from '../../chaos/fault.ts';
import { FaultyTransport } from '../../chaos/faulty-transport.ts';
import { InvalidOption, parseFaultList } from '../../chaos/grammar.ts';
import { type FaultReport, faultFields } from '../../chaos/report.ts';
import type { RunId } from '../../checkpoint/store.ts';
import type { Configuration } from '../../config/configuration.ts';
import { apiError } from '../../lib/errors.ts';
import type { Relay, RunContext } from '../run/context/run-context.ts';
import type { Wire } from '../wires/common/wire.ts';
import { invalid, single } from './request-fields.ts';

const HEADER = 'Holdfast-Fault';

const headerIn = (headers: IncomingHttpHeaders): string | undefined => single(headers[HEADER.toLowerCase()]);

/** Throws `faults_not_allowed`: otherwise a test could pass because its fault was ignored. */
export function admitFaults(headers: IncomingHttpHeaders, { faults }: Configuration): void {
  if (!faults.allow_header && headerIn(headers) !== undefined) throw apiError('faults_not_allowed');
}

/** The faults that a request asks for, one per attempt in order. Throws `invalid_field`. */
export function faultsIn(headers: IncomingHttpHeaders): readonly Fault[] {
  const given = headerIn(headers);
  if (given === undefined) return [];
  try {
    return parseFaultList(given);
  } catch (error) {
    if (!(error instanceof InvalidOption)) throw error;
    const { option, expected } = error;
    throw invalid(HEADER, option === '' ? expected : `${option}=${expected}`);
  }
}

/** Relays a run with these faults injected into its attempts. */
export const faultyRelay =
  (relay: Relay, faults: readonly Fault[]): Relay =>
  async (run, client, context) => {
    const { time } = context;
    const onFault = (report: FaultReport) => logFault(run.id, report, context);
    const transport = new FaultyTransport(context.transport, { wire: run.wire, faults, time, onFault });
    try {
      return await relay(run, client, { ...context, transport });
    } finally {
      transport.end();
    }
  };

/** Logs the faults of a request that joined an earlier run and makes no attempts of its own. */
export function missFaults(faults: readonly Fault[], run: RunId, wire: Wire, context: RunContext): void {
  for (const [index, fault] of faults.entries()) {
    const missed = 'the request came back to a run';
    logFault(run, { request: index + 1, path: wire.path, fault, missed }, context);
  }
}

function logFault(run: RunId, report: FaultReport, { log }: Pick<RunContext, 'log'>): void {
  const { request: attempt, missed } = report;
  const fields = { run, attempt, ...faultFields(report) };
  log.warn(fields, missed === undefined ? 'fault injected' : 'fault missed');
}
