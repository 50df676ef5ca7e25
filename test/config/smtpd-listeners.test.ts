import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { listenersOf } from '../../src/config/smtpd-listeners.ts'

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
  expect(listenersOf(config)).toMatchObject([
    { address: '127.0.0.1:25', tls: 'may', auth: 'none', upstream_proxy_protocol: '' },
    { address: '*:465', tls: 'wrapper', auth: 'required', upstream_proxy_protocol: 'haproxy' },
    { address: '127.0.0.1:2525', tls: 'none', auth: 'none', upstream_proxy_protocol: '' },
  ])
  expect(written.get('smtpd')).toContain('"address":"*:465"')
})

test('a table may have most parameters of the SMTP server, with references', () => {
  const { config, written } = load(`
    myhostname = "relay.example"
    smtpd_listen = []
    smtpd_tls_key_file = "/etc/key.pem"
    [[smtpd]]
    address = "*:587"
    smtpd_tls_security_level = "encrypt"
    smtpd_sasl_auth_enable = true
    smtpd_upstream_proxy_protocol = "haproxy"
    smtpd_banner = "submit.$mydomain"
    smtpd_timeout = "1m"
    smtpd_tls_cert_file = "/etc/submit.pem"
    smtpd_client_restrictions = ["permit_sasl_authenticated", "reject"]
  `)
  const [listener] = listenersOf(config)
  expect(listener).toMatchObject({ tls: 'encrypt', auth: 'may', upstream_proxy_protocol: 'haproxy' })
  expect(listener?.settings).toMatchObject({
    smtpd_banner: 'submit.example',
    smtpd_timeout: 60_000,
    smtpd_tls_cert_file: '/etc/submit.pem',
    smtpd_tls_key_file: '/etc/submit.pem',
  })
  expect(listener?.settings.smtpd_client_restrictions).toHaveLength(2)
  expect(written.get('smtpd')).toContain('"smtpd_banner":"submit.example"')
})

test('all problems of all tables are named, each with its line', () => {
  const toml = [
    'smtpd_listen = []',
    '[[smtpd]]',
    'tls = "maybe"',
    'smtpd_timeout = "soon"',
    'smtpd_process_limit = 5',
    '[[smtpd]]',
    'address = "127.0.0.1"',
    'colour = "red"',
    'smtpd_banner = "$nothing"',
    'smtpd_recipient_limits = 5',
    'upstream_proxy_protocol = "nginx"',
    'tls = "may"',
    'smtpd_tls_security_level = "may"',
    'smtpd_authorized_xclient_hosts = ["10.0.0.0/99"]',
  ]
  const problems = (() => {
    try {
      load(toml.join('\n'))
      return ''
    } catch (error) {
      return String(error).replaceAll(/^.*?deferd\.toml/gm, '')
    }
  })()
  expect(problems.split('\n')).toEqual([
    ':2: [[smtpd]]: has no address; write address = "HOST:PORT"',
    ':3: [[smtpd]] tls: expected one of none, may, encrypt, wrapper, got "maybe"',
    expect.stringMatching(/^:4: \[\[smtpd\]\] smtpd_timeout: expected /),
    ':5: smtpd_process_limit is a parameter of the whole relay, not of [[smtpd]]; set it above the tables',
    expect.stringMatching(/^:7: smtpd: /),
    ':8: unknown parameter colour',
    expect.stringMatching(/^:9: \$nothing: unknown parameter nothing/),
    ':10: unknown parameter smtpd_recipient_limits; did you mean smtpd_recipient_limit?',
    expect.stringMatching(/^:11: \[\[smtpd\]\] upstream_proxy_protocol: expected haproxy/),
    ':13: [[smtpd]] smtpd_tls_security_level: is what tls sets here; write one of them',
    expect.stringMatching(/^:14: smtpd_authorized_xclient_hosts: /),
  ])
})

test('a value that is no list of tables is refused with its line', () => {
  expect(() => load('smtpd = "*:25"')).toThrow(/:1: smtpd: expected \[\[smtpd\]\] tables/)
})
