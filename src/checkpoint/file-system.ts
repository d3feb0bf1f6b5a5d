import type * as node_fs from 'node:fs';

/** The calls made, so that a test can make them fail. */
export type FileSystem = Pick<
  typeof node_fs,
  | 'closeSync'
  | 'existsSync'
  | 'fdatasync'
  | 'fdatasyncSync'
  | 'fstatSync'
  | 'ftruncateSync'
  | 'openSync'
  | 'readFileSync'
  | 'renameSync'
  | 'rmSync'
  | 'unlinkSync'
  | 'utimesSync'
  | 'writeSync'
>;
