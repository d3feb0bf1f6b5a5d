import { ChildProcess } from 'node:child_process';
import { Server, Socket } from 'node:net';

// Unit tests share their workers and have to finish within a minute.
const refuse = (): never => {
  throw new Error('A unit test opens no socket and starts no process. List this file in test/tiers.ts.');
};
Server.prototype.listen = refuse;
Socket.prototype.connect = refuse;
(ChildProcess.prototype as unknown as { spawn: unknown }).spawn = refuse;
