import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** What this machine provides in place of base images and the network. */
export interface Machine {
  readonly npm: string;
  readonly npmCache: string;
  readonly registry: string;
}

const SYSTEM = ['bin', 'lib', 'lib64', 'sbin'];
const SETTINGS = [
  'hosts',
  'nsswitch.conf',
  'resolv.conf',
  'ssl',
  'ca-certificates',
  'ld.so.cache',
  'alternatives',
];
const TRUST = [
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
];

const outside = { ...process.env };

/** Uses the npm of the shell that started the tests; an npm script would find another one first on its PATH. */
export function thisMachine(): Machine {
  const ask = (...words: string[]) =>
    execFileSync('npm', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], cwd: '/' }).trim();
  const program = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim();
  // bin/npm is a link to lib/node_modules/npm/bin/npm-cli.js.
  const npm = dirname(dirname(realpathSync(program)));
  const npmCache = ask('config', 'get', 'cache');
  mkdirSync(npmCache, { recursive: true });
  return { npm, npmCache, registry: ask('config', 'get', 'registry') };
}

/** Creates a substitute for the official Node image: this machine's system, with only Node and npm below /usr/local. */
export function nodeImage(root: string, { npm, registry }: Machine) {
  const local = join(root, '.local');
  for (const name of [
    'usr',
    'etc',
    'dev',
    'proc',
    'tmp',
    'root',
    '.local/bin',
    '.local/lib/node_modules/npm',
  ]) {
    mkdirSync(join(root, name), { recursive: true });
  }
  for (const name of SYSTEM) {
    if (!existsSync(`/${name}`)) continue;
    if (lstatSync(`/${name}`).isSymbolicLink()) symlinkSync(readlinkSync(`/${name}`), join(root, name));
  }
  for (const name of SETTINGS) {
    const path = join('/etc', name);
    if (existsSync(path))
      cpSync(path, join(root, 'etc', name), { recursive: true, dereference: true, force: true });
  }
  writeFileSync(join(root, 'dev/null'), '');
  writeFileSync(join(local, 'bin/node'), '');
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'));
  writeFileSync(join(local, 'LICENSE'), 'Node.js is licensed for use as follows …\n');

  const trust = TRUST.flatMap((name) => (outside[name] === undefined ? [] : [[name, outside[name]]]));
  return {
    mounts: new Map([
      ['/usr', '/usr'],
      ['/usr/local', local],
      ['/usr/local/bin/node', realpathSync(process.execPath)],
      ['/usr/local/lib/node_modules/npm', npm],
      ['/dev/null', '/dev/null'],
    ]),
    environment: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/root',
      npm_config_registry: registry,
      ...Object.fromEntries(trust),
    } as Record<string, string>,
  };
}
