import { VERSION } from '../lib/version.ts';

export async function run(): Promise<void> {
  process.stdout.write(`${VERSION}\n`);
}
