import { expect, it } from 'vitest';
import { sleep } from '../../../src/lib/time.ts';
import { absentClient } from '../../../src/proxy/downstream/client.ts';
import { KeptAlive } from '../../../src/proxy/downstream/kept-alive.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

const NEVER = new AbortController().signal;

it('a client is sent a comment after each silence, and none while it takes nothing', async () => {
  const time = new VirtualTime();
  const sent: string[] = [];
  const { promise: drained, resolve: drain } = Promise.withResolvers<void>();
  let isFull = false;
  const write = (frames: string) => {
    sent.push(`${time.now()} ${frames}`);
    return !isFull;
  };
  const stream = new KeptAlive({ ...absentClient(), write, drained: () => drained }, time, 100);
  const until = (now_ms: number) => time.drive(sleep(time, now_ms - time.now(), NEVER));
  await until(150);
  await stream.write('event');
  await until(350);
  isFull = true;
  const blocked = stream.write('last');
  await until(950);
  expect(sent).toEqual(['100 : hb\n', '150 event', '300 : hb\n', '350 last']);
  drain();
  await blocked;
  isFull = false;
  await until(1150);
  stream.close();
  await until(2000);
  expect(sent.slice(4)).toEqual(['1000 : hb\n', '1100 : hb\n']);
});
