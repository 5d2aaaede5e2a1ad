import { type BackgroundBuild, buildConsoleInBackground } from '../console/build.ts';
import { bundleInBackground } from './bundle/background.ts';

/** Builds that run beside `npm start`. */
export interface Builds {
  /** Folder of the bundle to start processes from; see `BackgroundBundle`. */
  bundle: Promise<URL | undefined>;
  /** Ends the builds and resolves when their processes are gone. */
  stop(): Promise<void>;
}

/**
 * Bundles the sources, then builds the console, if their sources changed. The api and the
 * dispatcher wait for the bundle; nothing waits for the console.
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
