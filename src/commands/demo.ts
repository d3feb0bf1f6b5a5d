import { playDemo } from '../demo/demo.ts';
import { Terminal } from '../demo/terminal.ts';

const EXIT_DIFFERENT = 1;

export async function run(): Promise<number> {
  return (await playDemo(new Terminal(process.stdout))) ? 0 : EXIT_DIFFERENT;
}
