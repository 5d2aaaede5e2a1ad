import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { moduleUrl } from '../../../shared/process/module-url.ts';
import { type BackgroundBuild, buildConsoleInBackground } from '../../console/build.ts';
import { functionEnvironment } from '../../functions/confinement.ts';

const run = promisify(execFile);
/** Maximum wait for a bundle. */
const maxBundleMs = 15_000;

/** Bundle that is built in the background. */
interface BackgroundBundle {
  /**
   * Folder of the bundle of the current sources, with a trailing slash. Undefined if processes must
   * start without a new bundle: if this code is already compiled or bundled, if the bundler is not
   * installed, or if the cache is not writable.
   */
  folder: Promise<URL | undefined>;
  /** Ends the build. Resolves when its process has exited. */
  stop(): Promise<void>;
}

/**
 * Bundles the sources of a checkout in a separate process if they changed since the last start. The
 * api, the dispatcher and the sandbox start faster and with less memory from few modules. A failure
 * is only logged.
 */
export function bundleInBackground(log: (line: string) => void): BackgroundBundle {
  const isSource = moduleUrl('../../local/up.ts', import.meta.url).href.endsWith('.ts');
  if (!isSource) return { folder: Promise.resolve(undefined), stop: () => Promise.resolve() };
  const controller = new AbortController();
  // If this process exits early, the bundler exits too.
  const abort = () => controller.abort();
  process.once('exit', abort);
  const program = fileURLToPath(new URL('build.mjs', import.meta.url));
  // Passes only this environment, because the bundler needs no secrets.
  const env = functionEnvironment(currentEnvironment());
  const running = run(process.execPath, [program], {
    env,
    timeout: maxBundleMs,
    signal: controller.signal,
  });
  const folder = running.then(
    ({ stdout }) => new URL(stdout.trim()),
    (error: unknown) => {
      // After `stop`, the promise never settles, so nothing else starts.
      if (controller.signal.aborted) return new Promise<undefined>(() => undefined);
      if (!isWithoutBundler(error)) log(`the sources were not bundled: ${textOf(error)}`);
      return undefined;
    },
  );
  return {
    folder,
    stop: async () => {
      process.off('exit', abort);
      controller.abort();
      await running.catch(() => undefined);
    },
  };
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** True if the bundler is not installed (`npm ci --omit=dev`). */
const isWithoutBundler = (error: unknown): boolean =>
  error instanceof Error && 'stderr' in error && /ERR_MODULE_NOT_FOUND/.test(String(error.stderr));

/** Builds that run while `npm start` starts the service. */
export interface Builds {
  /** Folder of the bundle from which processes start. See `BackgroundBundle`. */
  bundle: Promise<URL | undefined>;
  /** Ends the builds. Resolves when their processes have exited. */
  stop(): Promise<void>;
}

/**
 * Bundles the sources and then builds the console, each only if its sources changed. The api and
 * the dispatcher wait for the bundle. Nothing waits for the console.
 */
export function startBuilds(dataDir: string, log: (line: string) => void): Builds {
  const bundling = bundleInBackground(log);
  let isStopped = false;
  let console: BackgroundBuild | undefined;
  void bundling.folder.then(() => {
    if (!isStopped) console = buildConsoleInBackground(dataDir, log);
  });
  return {
    bundle: bundling.folder,
    stop: async () => {
      isStopped = true;
      await bundling.stop();
      await console?.stop();
    },
  };
}
