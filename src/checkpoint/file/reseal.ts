import { withProof } from '../proven-text.ts';
import { decodeRecordBody, encodeRecordBody } from '../record-codec.ts';
import { epochSeal, type Seal } from '../seal.ts';
import type { Owner, RunId } from '../store.ts';
import { decodeFrame, encodeFrame, type Frame } from './frame.ts';
import { decodeClaim, encodeClaim } from './log-state.ts';
import { decodeRun, PLACE_OF_END } from './run-image.ts';

const NEWLINE = 0x0a;

/**
 * A finished run's lines, all sealed or proven with the first key, so that the run outlives older keys. Undefined if
 * nothing needs to change, or if the run is damaged or unproven, because resealing must not make it trusted.
 */
export function resealedLines(lines: Buffer, run: RunId, store_seal: Seal): Buffer | undefined {
  const seal = store_seal.strict();
  const image = decodeRun(lines, run, seal);
  if (!image || image.damage) return undefined;
  const first_key = `${seal.material.keys[0]?.id}.`;
  const parts: Buffer[] = [];
  let isOld = false;
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf(NEWLINE, start);
    const frame = decodeFrame(lines, start, end);
    if (frame?.kind === 'c' || frame?.kind === 'r' || frame?.kind === 'z') {
      parts.push(Buffer.from(resealedLine(frame, lines, run, image.owner, seal)));
      isOld ||= !lines.subarray(frame.body_start, frame.body_end).includes(first_key);
    } else if (frame) parts.push(lines.subarray(start, end + 1));
    start = end + 1;
  }
  return isOld ? Buffer.concat(parts) : undefined;
}

/** Empty for an unreadable record, which a later epoch has replaced. */
function resealedLine(frame: Frame, lines: Buffer, run: RunId, owner: Owner, seal: Seal): string {
  const { kind, number, body_start, body_end } = frame;
  if (kind === 'c') return encodeClaim(run, decodeClaim(frame, lines), seal);
  const own_seal = epochSeal(seal, run, owner, number);
  const body = lines.subarray(body_start, body_end);
  if (kind === 'r') {
    const read = decodeRecordBody(body, own_seal);
    return 'value' in read ? encodeFrame('r', run, number, encodeRecordBody(read.value, own_seal)) : '';
  }
  const { proof: _, ...end } = JSON.parse(body.toString()) as Record<string, unknown>;
  return encodeFrame('z', run, number, withProof(JSON.stringify(end), own_seal, PLACE_OF_END));
}
