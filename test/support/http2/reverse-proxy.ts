import { type ChildProcess, fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { freePort } from '../../../ops/local/ports.ts';
import { loopbackIdentity } from '../gateways/identity.ts';

/** Search path that includes /usr/sbin, where Debian installs servers. */
const path = `${process.env.PATH}:/usr/sbin`;

export const proxyNames = ['haproxy', 'nginx'] as const;
export type ProxyName = (typeof proxyNames)[number];

/** Argument that makes a program print its version and exit. */
const versionArgument = { haproxy: '-v', nginx: '-v', caddy: 'version' };

/** True if the program is installed. Otherwise prints one warning. */
export function isProxyInstalled(name: keyof typeof versionArgument): boolean {
  const isInstalled =
    spawnSync(name, [versionArgument[name]], { env: { PATH: path } }).status === 0;
  if (!isInstalled)
    console.warn(`${name} is not installed: its tests are skipped (apt-get install ${name}).`);
  return isInstalled;
}

/** HTTP/2 server in front of a backend of the test. */
export interface ReverseProxy {
  url: string;
  ca: string;
  /**
   * Starts new workers with the same configuration; the old workers send GOAWAY. Returns
   * immediately.
   */
  reload(): void;
}

/** Backend of a proxy. See `counting-backend.ts`. */
export interface Backend {
  port: number;
  /** Number of processed requests and total bytes of their bodies, by path. */
  processed(): Promise<Map<string, { count: number; bytes: number }>>;
}

const processedShape = z.record(z.string(), z.object({ count: z.number(), bytes: z.number() }));

/** Starts a backend that answers each request within `withinMs`. It ends with the test. */
export async function startBackend(withinMs = 0): Promise<Backend> {
  const child = fork(fileURLToPath(new URL('counting-backend.ts', import.meta.url)), [
    String(withinMs),
  ]);
  onTestFinished(() => end(child));
  const [port] = z.tuple([z.number()]).parse((await once(child, 'message')).slice(0, 1));
  return {
    port,
    processed: async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/processed`);
      return new Map(Object.entries(processedShape.parse(await answer.json())));
    },
  };
}

interface Files {
  directory: string;
  port: number;
  backendPort: number;
}

const haproxyConfig = ({ directory, port, backendPort }: Files): string => `
global
  hard-stop-after 5s
  maxconn 2000
defaults
  mode http
  retries 0
  timeout connect 5s
  timeout client 20s
  timeout server 20s
frontend gateway
  bind 127.0.0.1:${port} ssl crt ${join(directory, 'both.pem')} alpn h2
  default_backend counter
backend counter
  server counter 127.0.0.1:${backendPort}
`;

/** Returns the nginx configuration around its sites. nginx writes only into `directory`. */
const nginxMain = (directory: string, http: string): string => `
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
pid ${join(directory, 'nginx.pid')};
error_log ${join(directory, 'error.log')};
worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${join(directory, 'body')};
  proxy_temp_path ${join(directory, 'proxy')};
  fastcgi_temp_path ${join(directory, 'fastcgi')};
  uwsgi_temp_path ${join(directory, 'uwsgi')};
  scgi_temp_path ${join(directory, 'scgi')};
  ${http}
}
`;

const nginxConfig = ({ directory, port, backendPort }: Files): string =>
  nginxMain(
    directory,
    `
  client_max_body_size 10m;
  keepalive_requests 100000;
  upstream counter { server 127.0.0.1:${backendPort} max_fails=0; keepalive 200; }
  server {
    listen 127.0.0.1:${port} ssl http2;
    ssl_certificate ${join(directory, 'cert.pem')};
    ssl_certificate_key ${join(directory, 'key.pem')};
    location / {
      proxy_pass http://counter;
      proxy_next_upstream off;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }`,
  );

const commands = {
  haproxy: {
    config: haproxyConfig,
    args: (file: string) => ['-W', '-db', '-q', '-f', file],
    signal: 'SIGUSR2',
  },
  nginx: { config: nginxConfig, args: (file: string) => ['-c', file], signal: 'SIGHUP' },
} as const;

/**
 * Starts the program in front of `backend`. It ends with the test. Resolves when it accepts
 * connections.
 */
export async function startReverseProxy(name: ProxyName, backend: Backend): Promise<ReverseProxy> {
  const directory = await mkdtemp(join(tmpdir(), `carillon-${name}-`));
  const { authority, server } = await loopbackIdentity();
  const { certificate, privateKey } = server;
  const port = await freePort();
  const { config, args, signal } = commands[name];
  const file = join(directory, 'proxy.conf');
  await writeFile(join(directory, 'cert.pem'), certificate);
  await writeFile(join(directory, 'key.pem'), privateKey);
  await writeFile(join(directory, 'both.pem'), `${certificate}\n${privateKey}\n`);
  await writeFile(file, config({ directory, port, backendPort: backend.port }));
  const child = await launch({ command: [name, ...args(file)], directory, port });
  return {
    url: `https://127.0.0.1:${port}`,
    ca: authority.certificate,
    reload: () => child.kill(signal),
  };
}

/**
 * Starts nginx on `port` with a sites file from conf.d. Replaces the keys of `names` in the file
 * with addresses and paths of the test. Throws if a key is missing in the file. nginx ends with the
 * test or the test file.
 */
export async function startSites(
  sites: string,
  {
    port,
    names,
    onEnd,
  }: { port: number; names: Record<string, string>; onEnd: (end: () => Promise<void>) => void },
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'carillon-nginx-'));
  const { server } = await loopbackIdentity();
  await writeFile(join(directory, 'fullchain.pem'), server.certificate);
  await writeFile(join(directory, 'privkey.pem'), server.privateKey);
  const text = replaceNames(sites, {
    ...names,
    '/etc/letsencrypt/live/push.example.com': directory,
  });
  await writeFile(join(directory, 'sites.conf'), text);
  const file = join(directory, 'nginx.conf');
  await writeFile(file, nginxMain(directory, `include ${join(directory, 'sites.conf')};`));
  await launch({ command: ['nginx', '-c', file], directory, port, onEnd });
}

/** Replaces names in a file with values of a test. Throws if a name is missing. */
function replaceNames(file: string, names: Record<string, string>): string {
  let text = file;
  for (const [name, value] of Object.entries(names)) {
    if (!text.includes(name)) throw new Error(`the file has no ${name}`);
    text = text.replaceAll(name, value);
  }
  return text;
}

/** Starts Caddy on `port` with a Caddyfile for push.example.com. Works like `startSites`. */
export async function startCaddy(
  caddyfile: string,
  {
    port,
    names,
    onEnd,
  }: { port: number; names: Record<string, string>; onEnd: (end: () => Promise<void>) => void },
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'carillon-caddy-'));
  const { server } = await loopbackIdentity();
  const [certificate, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  await writeFile(certificate, server.certificate);
  await writeFile(key, server.privateKey);
  const site = { 'push.example.com {': `https://127.0.0.1:${port} {\n\ttls ${certificate} ${key}` };
  const options = '{\n\tadmin off\n\tauto_https disable_redirects\n}\n';
  const file = join(directory, 'Caddyfile');
  await writeFile(file, options + replaceNames(caddyfile, { ...names, ...site }));
  const command = ['caddy', 'run', '--adapter', 'caddyfile', '--config', file];
  await launch({ command, directory, port, onEnd });
}

interface Launch {
  command: string[];
  directory: string;
  port: number;
  onEnd?: (end: () => Promise<void>) => void;
}

/** Starts a proxy and waits until it accepts connections. */
async function launch({
  command,
  directory,
  port,
  onEnd = onTestFinished,
}: Launch): Promise<ChildProcess> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    env: { PATH: path, HOME: directory },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  onEnd(async () => {
    await end(child);
    await rm(directory, { recursive: true, force: true });
  });
  await reachable(port, child, () => errors);
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  // The master process ends all of its workers.
  child.kill('SIGTERM');
  await once(child, 'exit');
}

async function reachable(port: number, child: ChildProcess, errors: () => string): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isUp = await new Promise((resolve) =>
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false)),
    );
    socket.destroy();
    if (isUp) return;
    if (child.exitCode !== null) throw new Error(`the proxy ended: ${errors()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
