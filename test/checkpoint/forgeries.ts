import type { JournalRecord } from '../../src/checkpoint/journal.ts';
import { encodeRecordBody } from '../../src/checkpoint/record-codec.ts';
import { createProofs, createSeal, type Seal } from '../../src/checkpoint/seal.ts';
import type { Lease, Owner, RunEnd, RunId, Store } from '../../src/checkpoint/store.ts';
import {
  COMPLETE,
  HEADER,
  newRunId,
  OWNER,
  SEALING_KEY,
  SMALL_RUN,
  STRANGER,
  textRecord,
} from './fixtures.ts';

/** The seals with which a store can prove what it wrote. */
export const SEALS: Readonly<Record<string, Seal>> = {
  'sealing keys': createSeal([SEALING_KEY]),
  'the secret alone': createProofs('a secret of the deployment'),
};

/** One stored entry of a run, as another writer of the store sees and writes it. */
export interface StoredEntry {
  readonly kind: 'opening' | 'record' | 'end';
  readonly epoch: number;
  /** For a record, the number of its last event. */
  readonly seq: number;
  readonly body: string;
}

/** What a writer of the store can produce without a key: entries in the form of the version before proofs. */
export interface Forger {
  opening(run: RunId, owner: Owner, epoch: number, base: number): StoredEntry;
  end(epoch: number, end: RunEnd, seq: number): StoredEntry;
  /** The entry with another owner and everything else unchanged. */
  owned(entry: StoredEntry, from: Owner, to: Owner): StoredEntry;
  /** The opening with another base. */
  based(entry: StoredEntry, base: number): StoredEntry;
  /** The opening with the id of another run. */
  renamed(entry: StoredEntry, from: RunId, to: RunId): StoredEntry;
}

export const record = (epoch: number, content: JournalRecord): StoredEntry => ({
  kind: 'record',
  epoch,
  seq: content.seq,
  body: encodeRecordBody(content),
});

/** The record with another number. */
const renumbered = (entry: StoredEntry, seq: number): StoredEntry => ({
  ...entry,
  seq,
  body: entry.body.replace(/^\[\d+/, `[${seq}`),
});

/** The entry with one letter changed in the middle of its ciphertext, or one word changed in its plain text. */
function altered(entry: StoredEntry): StoredEntry {
  const word = entry.body.replace('world', 'sword');
  if (word !== entry.body) return { ...entry, body: word };
  const at = Math.floor(entry.body.length / 2);
  const other = entry.body[at] === 'A' ? 'B' : 'A';
  return { ...entry, body: entry.body.slice(0, at) + other + entry.body.slice(at + 1) };
}

/** The entries of the runs in the store, and the forger's tools. */
export interface Scene {
  /** `complete`: SMALL_RUN in two epochs, with its end. `open`: the same without its end. `cancelled`: in one epoch. */
  readonly complete: Log;
  readonly open: Log;
  readonly cancelled: Log;
  /** Another complete run of the same owner, with as many events in its first record. */
  readonly sibling: Log;
  /** A run of another owner, the forger. */
  readonly foreign: Log;
  readonly forger: Forger;
}

export interface Log {
  readonly run: RunId;
  readonly entries: readonly StoredEntry[];
}

/** The run under attack, and the entries that replace its own. */
export interface Forgery {
  readonly run: RunId;
  readonly entries: readonly StoredEntry[];
}

const END_OF_OTHER: RunEnd = { status: 'cancelled', at_ms: COMPLETE.at_ms };
/** Adds times, as in stored records; only then does Redis store some of them as plain text. */
const timed = ({ seq, header, events }: JournalRecord): JournalRecord =>
  header ? { seq, header, events } : { seq, at_ms: 1, events };
const RECORDS = SMALL_RUN.map(timed);
const OTHER_TEXT = timed(textRecord(0, 'An', 'other', 'text!'));

/** Appends to existing runs, so that each store keeps them in its own form. */
export async function makeScene(
  store: Store,
  entriesOf: (run: RunId) => Promise<readonly StoredEntry[]>,
  forger: Forger,
): Promise<Scene> {
  const begin = async (owner: Owner, records: readonly JournalRecord[]): Promise<Lease> => {
    const lease = await store.acquire(newRunId(), owner);
    await store.append(lease, records);
    return lease;
  };
  const takenOver = async () => {
    const first = await begin(OWNER, RECORDS.slice(0, 2));
    const second = await store.acquire(first.run, OWNER, 1);
    for (const one of RECORDS.slice(2)) await store.append(second, [one]);
    return second;
  };
  const complete = await takenOver();
  await store.finish(complete, COMPLETE);
  const open = await takenOver();
  const cancelled = await begin(OWNER, RECORDS.slice(0, 2));
  await store.append(cancelled, RECORDS.slice(2, 3));
  await store.finish(cancelled, END_OF_OTHER);
  const sibling = await begin(OWNER, [RECORDS[0] as JournalRecord, OTHER_TEXT]);
  await store.finish(sibling, COMPLETE);
  const foreign = await begin(STRANGER, [RECORDS[0] as JournalRecord, OTHER_TEXT]);
  const log = async ({ run }: Lease): Promise<Log> => ({ run, entries: await entriesOf(run) });
  return {
    complete: await log(complete),
    open: await log(open),
    cancelled: await log(cancelled),
    sibling: await log(sibling),
    foreign: await log(foreign),
    forger,
  };
}

const PLANTED = timed(textRecord(7, 'planted'));
const PLANTED_HEADER: JournalRecord = {
  seq: 0,
  header: { ...HEADER, body: '{"model":"gpt-test","messages":[{"role":"user","content":"planted"}]}' },
  events: [],
};

const first = ({ entries }: Log, kind: StoredEntry['kind'], skip = 0): StoredEntry =>
  entries.filter((entry) => entry.kind === kind)[skip] as StoredEntry;
const swapped = ({ entries }: Log, old: StoredEntry, entry: StoredEntry) =>
  entries.with(entries.indexOf(old), entry);
const without = (entries: readonly StoredEntry[], kind: StoredEntry['kind']) =>
  entries.filter((entry) => entry.kind !== kind);

/** The attacks open to a writer of the store. */
export const FORGERIES: Record<string, (scene: Scene) => Forgery> = {
  'the owner in the first opening': ({ complete, forger }) => {
    const opening = first(complete, 'opening');
    return { run: complete.run, entries: swapped(complete, opening, forger.owned(opening, OWNER, STRANGER)) };
  },
  'the owner in every opening': ({ complete, forger }) => ({
    run: complete.run,
    entries: complete.entries.map((entry) => forger.owned(entry, OWNER, STRANGER)),
  }),
  'an opening of the next epoch, for a stranger': ({ open, forger }) => ({
    run: open.run,
    entries: [...open.entries, forger.opening(open.run, STRANGER, 3, 7)],
  }),
  'an opening of its own in front of the records of others': ({ complete, forger }) => ({
    run: complete.run,
    entries: [
      forger.opening(complete.run, STRANGER, 1, -1),
      ...without(complete.entries, 'opening').map((entry) => ({ ...entry, epoch: 1 })),
    ],
  }),
  "records of others behind the opening of one's own run": ({ foreign, complete }) => ({
    run: foreign.run,
    entries: [
      first(foreign, 'opening'),
      ...without(complete.entries, 'opening').map((entry) => ({ ...entry, epoch: 1 })),
    ],
  }),
  'an opening that goes back to an earlier event': ({ open, forger }) => {
    const opening = first(open, 'opening', 1);
    return {
      run: open.run,
      entries: [
        ...open.entries.slice(0, open.entries.indexOf(opening)),
        forger.based(opening, 0),
        record(2, OTHER_TEXT),
      ],
    };
  },
  'an opening of the next epoch that discards everything': ({ open, forger }) => ({
    run: open.run,
    entries: [
      ...open.entries,
      forger.opening(open.run, OWNER, 3, 0),
      record(3, OTHER_TEXT),
      forger.end(3, COMPLETE, 3),
    ],
  }),
  'the content of a record': ({ complete }) => {
    const old = first(complete, 'record', 1);
    return { run: complete.run, entries: swapped(complete, old, altered(old)) };
  },
  'a plain record in the place of another': ({ complete }) => ({
    run: complete.run,
    entries: swapped(complete, first(complete, 'record', 1), record(1, OTHER_TEXT)),
  }),
  'a plain record behind the last one': ({ open }) => ({
    run: open.run,
    entries: [...open.entries, record(2, PLANTED)],
  }),
  'a plain record behind the last one, and an end': ({ open, forger }) => ({
    run: open.run,
    entries: [...open.entries, record(2, PLANTED), forger.end(2, COMPLETE, 8)],
  }),
  'a header with another request': ({ open }) => ({
    run: open.run,
    entries: swapped(open, first(open, 'record'), record(1, PLANTED_HEADER)),
  }),
  'a whole run in plain text': ({ complete, forger }) => ({
    run: complete.run,
    entries: [
      forger.opening(complete.run, OWNER, 1, -1),
      record(1, PLANTED_HEADER),
      record(1, OTHER_TEXT),
      forger.end(1, COMPLETE, 3),
    ],
  }),
  'plain records behind an opening that is proven': ({ sibling, forger }) => ({
    run: sibling.run,
    entries: [
      first(sibling, 'opening'),
      record(1, RECORDS[0] as JournalRecord),
      record(1, textRecord(0, 'planted')),
      forger.end(1, COMPLETE, 1),
    ],
  }),
  'a record of another run of the same owner': ({ complete, sibling }) => ({
    run: complete.run,
    entries: swapped(complete, first(complete, 'record', 1), first(sibling, 'record', 1)),
  }),
  "a record of one's own run": ({ complete, foreign }) => ({
    run: complete.run,
    entries: swapped(complete, first(complete, 'record', 1), first(foreign, 'record', 1)),
  }),
  'two records in the place of each other': ({ complete }) => {
    const [one, other] = [first(complete, 'record', 2), first(complete, 'record', 3)];
    return {
      run: complete.run,
      entries: swapped(complete, one, renumbered(other, one.seq)).with(
        complete.entries.indexOf(other),
        renumbered(one, other.seq),
      ),
    };
  },
  'a record that is repeated as a later one': ({ open }) => ({
    run: open.run,
    entries: [...open.entries, renumbered(first(open, 'record', 3), 9)],
  }),
  'records of one epoch in another': ({ complete }) => ({
    run: complete.run,
    entries: complete.entries
      .filter((entry) => entry.kind !== 'opening' || entry.epoch === 1)
      .map((entry) => ({ ...entry, epoch: 1 })),
  }),
  'the end of a run that lasts': ({ open, forger }) => ({
    run: open.run,
    entries: [...open.entries, forger.end(2, COMPLETE, 7)],
  }),
  'the end of a run that was cancelled': ({ cancelled, forger }) => ({
    run: cancelled.run,
    entries: [...without(cancelled.entries, 'end'), forger.end(1, COMPLETE, 5)],
  }),
  'the word in the end of a run that was cancelled': ({ cancelled }) => ({
    run: cancelled.run,
    entries: cancelled.entries.map((entry) => ({
      ...entry,
      body: entry.kind === 'end' ? entry.body.replace('cancelled', 'complete') : entry.body,
    })),
  }),
  'the end of another run of the same owner': ({ cancelled, complete }) => ({
    run: cancelled.run,
    entries: [
      ...without(cancelled.entries, 'end'),
      {
        ...first(complete, 'end'),
        epoch: 1,
        body: first(complete, 'end').body.replace('"seq":7', '"seq":5'),
      },
    ],
  }),
  'an end that counts fewer events, and fewer events': ({ complete }) => {
    const end = first(complete, 'end');
    const last = first(complete, 'record', 3);
    return {
      run: complete.run,
      entries: complete.entries
        .filter((entry) => entry !== last)
        .map((entry) => (entry === end ? { ...end, body: end.body.replace('"seq":7', '"seq":5') } : entry)),
    };
  },
  'another run of the same owner under its name': ({ complete, sibling, forger }) => ({
    run: complete.run,
    entries: sibling.entries.map((entry) => forger.renamed(entry, sibling.run, complete.run)),
  }),
};

/** The stored texts of three notes: two names of one owner, and the first name of another owner. */
export interface StoredNotes {
  readonly own: string;
  readonly sibling: string;
  readonly foreign: string;
}

/** The replacements for the first note that a writer of the store can try. */
export const NOTE_FORGERIES: Record<string, (notes: StoredNotes) => string> = {
  'a note in plain text': () => JSON.stringify({ value: 'forged' }),
  'the content of a note': ({ own }) =>
    own.includes('"own"')
      ? own.replace('"own"', '"forged"')
      : own.replace(/.(.{8}"\})$/, (letter, rest: string) => `${letter[0] === 'A' ? 'B' : 'A'}${rest}`),
  'a note of the same owner under another name': ({ sibling }) => sibling,
  "a note of one's own": ({ foreign }) => foreign,
};

/** What may be read of a run despite a forgery: its owner gets only what was delivered, and others get nothing. */
export const TOLD = {
  complete: RECORDS,
  open: RECORDS,
  cancelled: RECORDS.slice(0, 3),
  sibling: [RECORDS[0] as JournalRecord, OTHER_TEXT],
  foreign: [RECORDS[0] as JournalRecord, OTHER_TEXT],
} as const;

/** Says which forged content a reader accepted; undefined if none. */
export async function believed(store: Store, scene: Scene, { run }: Forgery): Promise<string | undefined> {
  const names = ['complete', 'open', 'cancelled', 'sibling', 'foreign'] as const;
  const name = names.find((known) => scene[known].run === run);
  if (!name) throw new Error('an unknown run');
  const [owner, other] = name === 'foreign' ? [STRANGER, OWNER] : [OWNER, STRANGER];
  if (await store.read(run, other, 0)) return 'a stranger reads the run';
  for (const orphan of await store.orphans(1000)) {
    if (orphan.run !== run || orphan.owner === owner) continue;
    const lease = await store.acquire(run, orphan.owner, orphan.epoch).catch(() => undefined);
    if (lease) return 'the run is salvaged for a stranger';
  }
  const stored = await store.read(run, owner, 0);
  if (!stored) return undefined;
  const told = TOLD[name];
  const is = JSON.stringify(stored.records);
  if (is !== JSON.stringify(told.slice(0, stored.records.length))) return 'other records are read';
  const wasComplete = name === 'complete' || name === 'sibling';
  if (stored.status === 'complete' && (!wasComplete || stored.records.length < told.length))
    return 'it passes for complete';
  return undefined;
}
