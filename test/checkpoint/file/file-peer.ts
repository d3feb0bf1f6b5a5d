import { randomBytes } from 'node:crypto';
import * as node_fs from 'node:fs';
import { onTestFinished } from 'vitest';
import { type FileSystem, PrivateDirectory } from '../../../src/checkpoint/file/private-directory.ts';
import type { AnswerTo, Reply, RequestKind, RequestOf } from '../../../src/checkpoint/file/protocol.ts';
import { FileStoreError, type Refusal } from '../../../src/checkpoint/file/refusal.ts';
import { RunDirectory } from '../../../src/checkpoint/file/run-directory.ts';
import { decodeRun, type RunImage } from '../../../src/checkpoint/file/run-image.ts';
import type { JournalRecord } from '../../../src/checkpoint/journal.ts';
import { encodeRecordBody } from '../../../src/checkpoint/record-codec.ts';
import type { RunEnd, RunId } from '../../../src/checkpoint/store.ts';
import { HEADER_RECORD, newRunId, OWNER, textRecord } from '../fixtures.ts';

export interface PeerOptions {
  readonly fs?: FileSystem;
  readonly ttl_ms?: number;
  readonly complete_ttl_ms?: number;
  readonly lease_ms?: number;
  readonly replica?: string;
  readonly segment_bytes?: number;
  readonly runs_max?: number;
  readonly onError?: (error: Error) => void;
}

/** One process that shares a directory with others, and its run. */
export class Peer {
  readonly directory: RunDirectory;
  run: RunId;
  epoch = 0;
  seq = -1;

  constructor(dir: string, run: RunId = newRunId(), options: PeerOptions = {}) {
    this.run = run;
    const { fs = node_fs, ttl_ms = 3_600_000, onError = fail, ...others } = options;
    this.directory = new RunDirectory({
      ttl_ms,
      complete_ttl_ms: ttl_ms,
      lease_ms: 3000,
      replica: randomBytes(4).toString('hex'),
      seal: undefined,
      ...others,
      directory: new PrivateDirectory(dir, fs),
      onError,
    });
    this.directory.open();
    onTestFinished(() => this.directory.close());
  }

  /** Throws a refusal. */
  call<Kind extends RequestKind>(kind: Kind, request: RequestOf<Kind>): AnswerTo<Kind> {
    return answerOf(this.directory.perform([[kind, request]])[0]);
  }

  /** `after`: the epoch that the new one follows. */
  acquire(after = 0): this {
    this.seq = this.call('acquire', { run: this.run, owner: OWNER, after }).seq;
    this.epoch = after + 1;
    return this;
  }

  /** Appends one event that says `word`, preceded by the header if the run has none yet. */
  append(word: string): Refusal | undefined {
    const records: JournalRecord[] =
      this.seq < 0 ? [HEADER_RECORD, textRecord(0, word)] : [textRecord(this.seq, word)];
    const bodies = records.map((record) => encodeRecordBody(record));
    const refusal = refusalOf(() => this.call('append', [this.run, this.epoch, undefined, ...bodies]));
    if (!refusal) this.seq = Math.max(this.seq, 0) + 1;
    return refusal;
  }

  /** Throws a refusal. */
  finish(end: RunEnd): void {
    const { run, epoch, seq } = this;
    this.call('finish', { run, owner: OWNER, epoch, end, seq });
  }

  release(): void {
    const { run, epoch, seq } = this;
    this.call('release', { run, epoch, seq });
  }

  /** The latest epoch of the run. */
  get latest(): number {
    this.directory.log.catchUp();
    return this.directory.state.runs.get(this.run)?.epoch ?? 0;
  }
}

/** Reads the run as a newly started process does. */
export function readRun(dir: string, run: RunId): RunImage {
  const found = new Peer(dir, run).call('read', { run });
  if (!found) throw new Error('the run is unknown');
  const image = decodeRun(found.lines, run, undefined);
  if (!image) throw new Error('the run cannot be read');
  return image;
}

export function refusalOf(call: () => unknown): Refusal | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    return error as Refusal;
  }
}

function answerOf<Answer>(reply: Reply): Answer {
  if (reply && 'refusal' in reply) throw new FileStoreError(reply.refusal);
  return reply?.answer as Answer;
}

function fail(error: Error): never {
  throw error;
}
