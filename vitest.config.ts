import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// Processes and threads that tests start read our TypeScript in half the time once it has been compiled.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/compiled', import.meta.url));

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    // Files run at the same time, each on a database of its own. One process runs many of them, one after the other:
    // what they import costs a second to load. Nothing we have at the level of a module tells files apart. One more
    // process than cores: a file often waits for a server or a timer.
    pool: 'forks',
    isolate: false,
    // Node strips the types and keeps what it compiled; nothing here needs a bundler.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    maxWorkers: Math.min(availableParallelism() + 1, 8),
    // What a test waits for comes when it comes: machines are shared and noisy.
    expect: { poll: { timeout: 20_000 } },
    testTimeout: 40_000,
    hookTimeout: 60_000,
    // A child that a test left behind must not keep the run alive.
    teardownTimeout: 20_000,
  },
});
