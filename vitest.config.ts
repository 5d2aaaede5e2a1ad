import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// Caches compiled TypeScript for the processes and threads that tests start, which halves their
// loading time.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(
  new URL('node_modules/.cache/compiled', import.meta.url),
);

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/setup.ts'],
    // Files run concurrently, each with its own database. One process runs many files in turn,
    // because loading their imports takes a second, and no module state differs between files.
    // There are more processes than cores, because files often wait for a server or a timer: on two
    // cores a run takes 466 s with five, 504 s with three.
    pool: 'forks',
    isolate: false,
    // Node strips the types and caches the result, so that no bundler is needed.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    maxWorkers: Math.min(availableParallelism() + 3, 8),
    // Long timeouts, because test machines are shared.
    expect: { poll: { timeout: 20_000 } },
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Ends the run even if a test left a child process running.
    teardownTimeout: 20_000,
  },
});
