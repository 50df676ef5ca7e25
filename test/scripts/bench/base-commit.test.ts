import { expect, test } from 'vitest'
import { runtimePackages } from '../../../scripts/bench/base-commit.ts'

const lock = (version: string, tool: string) =>
  JSON.stringify({
    packages: {
      '': { version: '0.1.0' },
      'node_modules/zod': { version },
      'node_modules/vitest': { version: tool, dev: true },
    },
  })

test('packages for development do not make a commit run on other ones', () => {
  expect(runtimePackages(lock('1.0.0', '1.0.0'))).toBe(runtimePackages(lock('1.0.0', '2.0.0')))
  expect(runtimePackages(lock('1.0.0', '1.0.0'))).not.toBe(runtimePackages(lock('1.0.1', '1.0.0')))
})
