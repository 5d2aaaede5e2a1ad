import { type BackgroundBuild, buildConsoleInBackground } from '../console/build.ts';
import { bundleInBackground } from './bundle/background.ts';

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
