import { defineConfig } from 'vitest/config'

/** The suites that take their time: crash loops, fuzzing, thousands of simulated worlds. */
export default defineConfig({
  test: {
    include: ['test/long/**/*.long.ts'],
    pool: 'forks',
    globalSetup: ['test/support/temporary-folder.ts'],
    testTimeout: 3_600_000,
    fileParallelism: false,
  },
})
