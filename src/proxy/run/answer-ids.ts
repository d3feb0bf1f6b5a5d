import { BestEffortStore, STORE_WAIT_MAX_MS } from '../../checkpoint/best-effort-store.ts';
import type { Notes } from '../../checkpoint/notes.ts';
import type { Owner } from '../../checkpoint/store.ts';
import type { JsonBody } from '../../lib/json-body.ts';
import { inTime } from '../../lib/time.ts';
import type { Wire } from '../wires/common/wire.ts';
import type { RunContext } from './context/run-context.ts';
import type { RunState } from './run-state.ts';

const keyOf = (id: string) => ({ kind: 'answer_id', name: id }) as const;

/**
 * Maps the id of an answer as its client knows it to the id of the attempt that finished it. The client has the id from
 * the beginning of the answer; a provider that stores answers knows a recovered one by its last attempt. The next
 * request that names the first id is translated.
 */
export async function leaveAnswerId(
  { run, output, signal }: RunState,
  finished: string | undefined,
  { store, configuration, time, log }: Pick<RunContext, 'store' | 'configuration' | 'time' | 'log'>,
): Promise<void> {
  const { stream_id } = output;
  if (run.wire.previousAnswer === undefined || signal.aborted) return;
  if (stream_id === undefined || finished === undefined || finished === stream_id) return;
  const ttl_ms = configuration.checkpoint.ttl_s * 1000;
  const left = store.notes.put(run.owner, keyOf(stream_id), finished, ttl_ms).catch((error: unknown) => {
    log.warn({ run: run.id, err: error }, 'the id of an answer is not stored: the store refuses it');
  });
  await inTime(left, time, STORE_WAIT_MAX_MS);
}

/**
 * Translates answer ids in requests to the ones that their provider knows. A failing or slow store never delays a
 * request for long.
 */
export class AnswerIds {
  readonly #notes: Notes;
  readonly #patience: BestEffortStore;

  constructor(context: Pick<RunContext, 'store' | 'time' | 'log'>) {
    this.#notes = context.store.notes;
    this.#patience = new BestEffortStore(
      context,
      'answers that were recovered are asked for by the ids of their clients',
    );
  }

  /** The request for the provider; the same object if nothing changes. Never rejects. */
  async inPlace(wire: Wire, body: JsonBody, ownerOf: () => Owner): Promise<JsonBody> {
    const { previousAnswer: field } = wire;
    const id = field === undefined ? undefined : body.fields[field];
    if (field === undefined || typeof id !== 'string' || this.#patience.isResting) return body;
    const known = await this.#patience.answerOf(this.#notes.get(ownerOf(), keyOf(id)));
    if (known === undefined) return body;
    const fields = { ...body.fields, [field]: known };
    return { text: JSON.stringify(fields), fields };
  }
}
