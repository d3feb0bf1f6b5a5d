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
  | 'linkSync'
  | 'mkdirSync'
  | 'openSync'
  | 'opendirSync'
  | 'readFileSync'
  | 'readSync'
  | 'renameSync'
  | 'rmSync'
  | 'rmdirSync'
  | 'statSync'
  | 'writeSync'
>;

export const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;
