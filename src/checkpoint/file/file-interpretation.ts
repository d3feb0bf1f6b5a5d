import type { Damage, Holder, Owner, RunEnd, StoredRun } from '../store.ts';
import type { FoundRun } from './file-reader.ts';

/** What was found of a run. Nobody can be shown to own a run whose opening line cannot be read. */
export type Interpretation =
  | { readonly owner: Owner; readonly stored: StoredRun; readonly damage: Damage | undefined }
  | { readonly owner?: never; readonly stored?: never; readonly damage: Damage };

/** What the files of a run mean. `holder`: of a running run. */
export function interpretRun(found: FoundRun, holder: Holder): Interpretation {
  const { image } = found;
  if (!image) return { damage: { record: 0, seq: 0, reason: 'the opening line cannot be read' } };
  const { owner, epoch, takeovers, records, isTorn } = image;
  const seq = Math.max(image.seq, 0);
  const end = endOf(found);
  // The last line of a run that is being written is not torn, but on its way.
  const isUnderWay = isTorn && !end && holder.state === 'alive';
  const damage = isUnderWay ? undefined : damageOf(found, seq);
  const stored: StoredRun = {
    status: end?.status ?? 'running',
    ...(end && { end }),
    epoch,
    holder: end ? { state: 'released' } : holder,
    takeovers,
    seq,
    records,
    ...(damage && { damage }),
  };
  return { owner, stored, damage };
}

function damageOf({ image, finished_at_ms }: FoundRun, seq: number): Damage | undefined {
  if (!image || image.damage || image.end || finished_at_ms === undefined) return image?.damage;
  return { record: image.records.length, seq, reason: 'the final line is missing' };
}

/** What a damaged run says about its end is not worth more than the rest behind the damage. */
function endOf({ image, finished_at_ms }: FoundRun): RunEnd | undefined {
  if (image?.end || finished_at_ms === undefined) return image?.end;
  return { status: 'recovered_from_partial', at_ms: finished_at_ms, cause: 'damaged_checkpoint' };
}
