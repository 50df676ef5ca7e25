/** Tests do not depend on the configuration of the machine they run on. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'

test('a test that would read /etc/deferd/deferd.toml fails', () => {
  expect(() => loadConfig({ env: {}, overrides: [], uid: 0, calledAs: 'deferd' })).toThrow(
    '/etc/deferd/deferd.toml: cannot be read: tests do not read the configuration of this machine',
  )
})

test('a deferd process that a test starts reads an empty file', () => {
  const deferd = join(import.meta.dirname, '../../bin/deferd.js')
  const { stdout } = spawnSync(process.execPath, [deferd, 'config', '--json', 'mail_name'], { encoding: 'utf8' })
  expect(JSON.parse(stdout)).toEqual({ name: 'mail_name', value: 'Deferd', default: 'Deferd', given: false })
  expect(process.env['DEFERD_CONFIG']).toBe('/dev/null')
})
