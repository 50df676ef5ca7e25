import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { blocksOf } from '../../src/config/smtpd-listeners.ts'

function load(toml: string) {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-listeners-'))
  try {
    const file = join(folder, 'deferd.toml')
    writeFileSync(file, toml)
    return loadConfig({ file, env: {}, overrides: [], uid: 0, calledAs: 'deferd', hostname: 'relay.example' })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('[[smtpd]] tables add listeners with their own settings to smtpd_listen', () => {
  const { config, written } = load(`
    smtpd_listen = ["127.0.0.1:25"]
    smtpd_tls_security_level = "may"
    [[smtpd]]
    address = "*:465"
    tls = "wrapper"
    auth = "required"
    upstream_proxy_protocol = "haproxy"
    [[smtpd]]
    address = "127.0.0.1:2525"
  `)
  expect(blocksOf(config)).toEqual([
    { address: '127.0.0.1:25', tls: 'may', auth: 'none', upstream_proxy_protocol: '' },
    { address: '*:465', tls: 'wrapper', auth: 'required', upstream_proxy_protocol: 'haproxy' },
    { address: '127.0.0.1:2525', tls: 'none', auth: 'none', upstream_proxy_protocol: '' },
  ])
  expect(written.get('smtpd')).toContain('"address":"*:465"')
})

test.each([
  '[[smtpd]]\ntls = "may"',
  '[[smtpd]]\naddress = "*:25"\ntls = "maybe"',
  '[[smtpd]]\naddress = "*:25"\ncolour = "red"',
  '[[smtpd]]\naddress = "*:25"\nupstream_proxy_protocol = "nginx"',
  'smtpd = "*:25"',
])('an invalid table is refused with its line: %j', (toml) => {
  expect(() => load(toml)).toThrow(/:1: smtpd: expected (\[\[smtpd\]\] tables|a table of address)/)
})
