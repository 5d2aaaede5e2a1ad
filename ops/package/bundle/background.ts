import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { moduleUrl } from '../../../shared/process/module-url.ts';
import { functionEnvironment } from '../../functions/confinement.ts';

const run = promisify(execFile);
/** Longest wait for a bundle; on two cores it takes 2 s. */
const maxBundleMs = 15_000;

/** Bundle that is made beside other work. */
export interface BackgroundBundle {
  /**
   * Folder of the bundle of the present sources, with a slash at its end. undefined where processes
   * start as they are: from modules that are bundled or compiled already, or from sources without a
   * bundler or with a cache that cannot be written.
   */
  folder: Promise<URL | undefined>;
  /** Ends the work and resolves when its process is gone. */
  stop(): Promise<void>;
}

/**
 * Bundles the sources of a checkout if they changed since the last start, in a process of its own:
 * the api, the dispatcher and the sandbox then start from few modules, with less memory and in less
 * time. A failure is logged and changes nothing else.
 */
export function bundleInBackground(log: (line: string) => void): BackgroundBundle {
  const isSource = moduleUrl('../../local/up.ts', import.meta.url).href.endsWith('.ts');
  if (!isSource) return { folder: Promise.resolve(undefined), stop: () => Promise.resolve() };
  const controller = new AbortController();
  // A process that ends without waiting leaves no bundler behind.
  const abort = () => controller.abort();
  process.once('exit', abort);
  const program = fileURLToPath(new URL('build.mjs', import.meta.url));
  // The bundler needs none of our secrets.
  const env = functionEnvironment(currentEnvironment());
  const running = run(process.execPath, [program], {
    env,
    timeout: maxBundleMs,
    signal: controller.signal,
  });
  const folder = running.then(
    ({ stdout }) => new URL(stdout.trim()),
    (error: unknown) => {
      // What is stopped starts nothing more.
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

/** Tells whether the bundler is not installed: `npm ci --omit=dev`. */
const isWithoutBundler = (error: unknown): boolean =>
  error instanceof Error && 'stderr' in error && /ERR_MODULE_NOT_FOUND/.test(String(error.stderr));
