import type { Notes } from '../../src/checkpoint/notes.ts';
import { replicasOf } from '../../src/checkpoint/owner.ts';
import type { Time } from '../../src/lib/time.ts';
import { Fleet, type Sign } from '../../src/status/fleet.ts';

export const INTERVAL_MS = 3000;

interface Member {
  readonly notes: Notes;
  readonly time: Time;
  readonly name: string;
  readonly isShared?: boolean;
  readonly sign?: () => Sign;
}

/** A replica as the others in its fleet know it. */
export const fleetOf = ({ notes, time, name, isShared = true, sign }: Member): Fleet =>
  new Fleet({
    notes,
    owner: replicasOf('a secret for tests only'),
    isShared,
    interval_ms: INTERVAL_MS,
    time,
    name: () => name,
    release: '1.2.3',
    started_at_ms: time.wall(),
    sign: sign ?? (() => ({ status: 'serving', runs: 0 })),
  });
