import { setFlagsFromString } from 'node:v8';

/**
 * Makes V8 free the memory of each finished compilation of its middle tier (Maglev) at once. By default it leaves that
 * to a background task, which does not run while the program is busy: the memory of every compilation then piles up,
 * 100 KB and more for each function, and the allocator keeps much of it afterwards. Measured on 2 cores while 1000
 * streams begin: 88 KB per stream with the default, 72 KB without, and the same CPU.
 */
export function freeCompilerMemoryAtOnce(): void {
  setFlagsFromString('--no-maglev-destroy-on-background');
}
