import { setFlagsFromString } from 'node:v8';

/**
 * Keeps the space for short-lived objects at the size it has. V8 doubles it whenever much of it survives a collection,
 * as it does while many streams begin, up to 128 MB, and hardly ever gives it back. Streams need little of it once they
 * run. V8 reads this flag whenever it is about to grow that space, so it may be set at any time.
 */
export function keepYoungGenerationSize(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}
