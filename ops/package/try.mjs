// Tests the package: packs it, installs it in an empty folder, runs `npx carillon up` there and
// stops it with Ctrl-C. `.ci/run` runs this as `npm run try-package`. Exits with 1 on a failure.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const startTimeoutMs = 120_000;
const stopTimeoutMs = 20_000;
const folder = mkdtempSync(join(tmpdir(), 'carillon-package-'));

try {
  await tryPackage();
  console.log('The packed file installs, starts and stops.');
} catch (error) {
  console.error(`The packed file does not run: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function tryPackage() {
  npm(['pack', '--silent', '--pack-destination', folder], root);
  const [packed] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  writeFileSync(join(folder, 'package.json'), '{"private":true}\n');
  npm(['install', '--no-audit', '--no-fund', '--loglevel=error', join(folder, packed)], folder);
  // The file that `npx carillon` runs. npx itself would exit by the signal and hide the exit code.
  const service = spawn(join(folder, 'node_modules', '.bin', 'carillon'), ['up'], {
    cwd: folder,
    env: { ...process.env, PORT: '0', METRICS_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  try {
    const url = await withTimeout(readyUrl(service), startTimeoutMs, 'no line "carillon ready"');
    const response = await fetch(`${url}/readyz`);
    if (!response.ok) throw new Error(`GET /readyz answers ${response.status}`);
    const page = await fetch(`${url}/console`);
    if (!page.ok) throw new Error(`GET /console answers ${page.status}`);
    const description = await fetch(`${url}/openapi.json`);
    if (!description.ok) throw new Error(`GET /openapi.json answers ${description.status}`);
    const { tryUrl } = await metaOf(url);
    const worker = await fetch(`${tryUrl}sw.js`);
    if (!worker.ok) throw new Error(`GET ${tryUrl}sw.js answers ${worker.status}`);
    process.kill(-service.pid, 'SIGINT');
    const code = await withTimeout(exitOf(service), stopTimeoutMs, 'the service does not stop');
    if (code !== 0) throw new Error(`the service ends with ${code}`);
  } finally {
    if (service.exitCode === null && service.signalCode === null)
      process.kill(-service.pid, 'SIGKILL');
  }
}

async function metaOf(url) {
  const token = readFileSync(join(folder, '.carillon', 'admin-token'), 'utf8').trim();
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`${url}/console/api/meta`, { headers })).json();
}

function npm(args, cwd) {
  execFileSync('npm', args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] });
}

function readyUrl(service) {
  return new Promise((resolve, reject) => {
    createInterface({ input: service.stdout }).on('line', (line) => {
      const [, url] = /^carillon ready (\S+)$/.exec(line) ?? [];
      if (url) resolve(url);
    });
    service.once('exit', (code) => reject(new Error(`it ended with ${code} before it was ready`)));
  });
}

function exitOf(service) {
  return new Promise((resolve) => service.once('exit', resolve));
}

function withTimeout(promise, ms, text) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${text} within ${ms / 1000} s`)), ms);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}
