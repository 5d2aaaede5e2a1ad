import { execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/** Name service libraries that glibc loads when it runs, and parts of it that native modules name. */
const libraries = [
  'libnss_dns.so.2',
  'libnss_files.so.2',
  'libresolv.so.2',
  'librt.so.1',
  'libdl.so.2',
  'libpthread.so.0',
  'libutil.so.1',
];
const libraryFolder = '/lib/x86_64-linux-gnu';
/** Certificates that this machine trusts. */
export const certificates = '/etc/ssl/certs/ca-certificates.crt';

/** Images that stand in for the bases of the Dockerfile where no registry of images can be reached. */
export const standIns = {
  node: 'localhost/carillon-check-node',
  runtime: 'localhost/carillon-check-runtime',
};

/**
 * Makes both stand-ins from files of this machine: Node with the libraries that it needs, and npm. They prove the steps of
 * the Dockerfile, not the bases that it names.
 */
export async function makeStandIns(env: NodeJS.ProcessEnv): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'carillon-image-'));
  try {
    const runtime = join(folder, 'runtime');
    await fill(runtime);
    importImage(runtime, standIns.runtime, env);
    const node = join(folder, 'node');
    await cp(runtime, node, { recursive: true });
    await copy(process.execPath, join(node, 'usr/local/bin/node'));
    // `npm run` names its own file: …/npm/bin/npm-cli.js.
    const npm = resolve(env.npm_execpath ?? '', '../..');
    await cp(npm, join(node, 'usr/local/lib/node_modules/npm'), { recursive: true, dereference: true });
    importImage(node, standIns.node, env);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function fill(root: string): Promise<void> {
  for (const name of ['tmp', 'proc', 'sys', 'dev', 'run', 'etc'])
    await mkdir(join(root, name), { recursive: true });
  const linked = execFileSync('ldd', [process.execPath], { encoding: 'utf8' }).match(/\/\S+/g) ?? [];
  const files = [
    ...new Set([...linked, ...libraries.map((name) => join(libraryFolder, name)), certificates]),
  ];
  for (const file of files) await copy(file, join(root, file));
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0::/:/\nnonroot:x:65532:65532::/tmp:/\n');
  await writeFile(join(root, 'etc/group'), 'root:x:0:\nnonroot:x:65532:\n');
}

async function copy(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await cp(from, to, { dereference: true });
}

function importImage(folder: string, name: string, env: NodeJS.ProcessEnv): void {
  const script = 'tar -C "$0" -c . | podman import -c "ENV PATH=/usr/local/bin:/usr/bin:/bin" - "$1"';
  execFileSync('sh', ['-c', script, folder, name], { env, stdio: ['ignore', 'ignore', 'pipe'] });
}
