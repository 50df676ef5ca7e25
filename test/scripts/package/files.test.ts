/** The configuration files and maintainer scripts of the packages. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'

const folder = join(import.meta.dirname, '../../../scripts/package/debian')
const configuration = readFileSync(join(folder, 'deferd.toml'), 'utf8')
const load = (text: string) => configFrom(parse(text), 'relay.example.com')

describe('deferd.toml', () => {
  test('sets the queue folder and a port beside that of another mail server', () => {
    const { config, given } = load(configuration)
    expect([...given]).toEqual(['queue_directory', 'smtpd_listen'])
    expect([config.queue_directory, config.smtpd_listen]).toEqual(['/var/lib/deferd', ['127.0.0.1:2525']])
  })

  test('has examples that can be used', () => {
    const examples = configuration.split('\n').filter((line) => /^# \w+ = /.test(line))
    expect(examples.length).toBeGreaterThan(8)
    expect(load(examples.map((line) => line.slice(2)).join('\n')).given.size).toBe(examples.length)
  })
})

test.each(['postinst', 'prerm', 'postrm'])('deferd.%s is a script of sh that ends at the first error', (name) => {
  const path = join(folder, `deferd.${name}`)
  expect(readFileSync(path, 'utf8')).toMatch(/^#!\/bin\/sh\n(?:#.*\n)*set -e\n/)
  execFileSync('sh', ['-n', path])
})
