import { defineConfig } from 'vitest/config'

/** The suites that take their time: crash loops, fuzzing, thousands of simulated worlds. */
export default defineConfig({
  test: {
    include: ['test/long/**/*.long.ts'],
    pool: 'forks',
    globalSetup: ['test/support/temporary-folder.ts'],
    setupFiles: ['test/support/default-files-guard.ts', 'test/support/open-worlds-guard.ts'],
    env: { DEFERD_CONFIG: '/dev/null' },
    testTimeout: 3_600_000,
    fileParallelism: false,
    // Two cores.
    maxConcurrency: 2,
  },
})
