import { encodeRecordBody, seqOf } from '../record-codec.ts';
import type { Seal } from '../seal.ts';
import type { RunId } from '../store.ts';
import { decodeFrame, encodeFrame } from './frame.ts';
import { decodeRun } from './run-image.ts';

const NEWLINE = 0x0a;

/**
 * The lines of a finished run with every record sealed by the first key, so that the run outlives the older ones;
 * undefined when it needs none of them, or is damaged. `seal`: the store's.
 */
export function resealedLines(lines: Buffer, run: RunId, seal: Seal): Buffer | undefined {
  const image = decodeRun(lines, run, seal);
  if (!image || image.damage) return undefined;
  const records = new Map(image.records.map((record) => [record.seq, record]));
  const own_seal = seal.for(run);
  const parts: Buffer[] = [];
  let isOld = false;
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf(NEWLINE, start);
    const frame = decodeFrame(lines, start, end);
    if (frame?.kind === 'r') {
      const body = lines.subarray(frame.body_start, frame.body_end);
      const record = records.get(seqOf(body) ?? -1);
      if (record)
        parts.push(Buffer.from(encodeFrame('r', run, frame.number, encodeRecordBody(record, own_seal))));
      isOld ||= !body.includes(`,"${seal.keys[0]?.id}.`);
    } else if (frame) parts.push(lines.subarray(start, end + 1));
    start = end + 1;
  }
  return isOld ? Buffer.concat(parts) : undefined;
}
