import * as node_fs from 'node:fs';
import type { FileSystem } from '../../../src/checkpoint/file/private-directory.ts';

/** A file system that runs `interrupt` immediately before one of the calls made while it is `armed`. */
export class InterruptedFileSystem {
  armed: boolean = false;
  interrupted: boolean = false;
  /** Also interrupts every later call. */
  forever: boolean = false;
  #calls = 0;
  readonly fs: FileSystem;

  constructor(at_call: number, interrupt: () => void) {
    this.fs = Object.fromEntries(
      Object.entries(node_fs).map(([name, call]) => [
        name,
        typeof call !== 'function'
          ? call
          : (...parameters: unknown[]) => {
              if (this.armed && (++this.#calls === at_call || (this.forever && this.interrupted))) {
                this.interrupted = true;
                interrupt();
              }
              return (call as (...all: unknown[]) => unknown)(...parameters);
            },
      ]),
    ) as unknown as FileSystem;
  }
}
