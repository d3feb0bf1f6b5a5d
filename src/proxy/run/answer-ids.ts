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
 * A client knows an answer by the id of its beginning. A provider that keeps answers knows a recovered one by the id of
 * the attempt that finished it. Leaves a note that maps the first id to the second, for the next request that names it.
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

/** Names answers in requests as their provider knows them. A store that fails or is slow delays no request for long. */
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

  /** The request as the provider is to have it; the same one if nothing has to be changed. Never rejects. */
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
