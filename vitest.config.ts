import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { SlowFilesFirst } from './test/support/slow-files-first.ts'
import { PROCESS_TIER } from './test/tiers.ts'

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: 'fast', include: ['test/**/*.test.ts'], exclude: [...PROCESS_TIER] } },
      { extends: true, test: { name: 'process', include: [...PROCESS_TIER] } },
    ],
    pool: 'forks',
    // Two more than there are processors: many tests wait for processes that they have started.
    maxWorkers: availableParallelism() + 2,
    // Test files share processes and the modules loaded there: no test changes what another one sees.
    isolate: false,
    // Imports by Node, as in a daemon. Transformation by Vite, and its access to imported names, took a third of the CPU time.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: { sequencer: SlowFilesFirst },
    globalSetup: ['test/support/memory-folder.ts', 'test/support/temporary-folder.ts'],
    setupFiles: ['test/support/default-files-guard.ts', 'test/support/open-worlds-guard.ts'],
    env: { DEFERD_CONFIG: '/dev/null' },
    // Far above what a test takes alone: a loaded machine makes it slow, not wrong.
    // Conditions are awaited longer than the 1 s of vitest, because processes of other tests run too.
    expect: { poll: { timeout: 30_000 } },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
