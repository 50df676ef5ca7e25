import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHash, X509Certificate } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { configFrom, ConfigError, type LoadedConfig } from '../../src/config/load.ts'
import { prepareFiles } from '../../src/daemon/preparation.ts'
import { tokenCommand } from '../../src/daemon/token-command.ts'
import { readOauthClients } from '../../src/oauth/oauth-client.ts'
import { rsaKeys } from '../support/oauth-clients.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { CLIENT_CERTIFICATE, CLIENT_KEY } from '../support/rsa-certificate.ts'

const folder = mkdtempSync(join(tmpdir(), 'oauth-client-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let count = 0
function file(text: string, mode = 0o600): string {
  const path = join(folder, `f${++count}`)
  writeFileSync(path, text, { mode })
  return path
}

const BASE = { provider: 'microsoft', tenant: 't', grant: 'client_credentials', client_id: 'app' }
const SERVICE = { provider: 'google', grant: 'service_account' }
const LOGIN = { ...BASE, grant: 'refresh_token' }
const load = (oauth: Readonly<Record<string, object>>, more: object = {}): LoadedConfig => configFrom({ oauth, ...more }, 'relay.example')
const read = (table: object) => readOauthClients(load({ x: table }), tokenCommand).get('x')
const pem = rsaKeys().privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

describe('the secrets of a table', () => {
  test('from a file, without the line break at its end', () => {
    expect(read({ ...BASE, client_secret_file: file('s3 cret~\n') })?.proof).toEqual({ kind: 'secret', secret: 's3 cret~' })
  })

  test('from the environment', () => {
    const loaded = {
      ...load({ x: { ...BASE, client_secret_file: file('x') } }),
      oauthSecrets: new Map([['DEFERD_OAUTH_X_CLIENT_SECRET', 'env']]),
    }
    expect(readOauthClients(loaded, tokenCommand).get('x')?.proof).toEqual({ kind: 'secret', secret: 'env' })
  })

  test('a certificate with its key, by the thumbprint of its DER form', () => {
    const proof = read({ ...BASE, client_certificate_file: file(`${CLIENT_CERTIFICATE}${CLIENT_KEY}`) })?.proof
    const thumbprint = createHash('sha256').update(new X509Certificate(CLIENT_CERTIFICATE).raw).digest('base64url')
    expect(proof).toMatchObject({ kind: 'certificate', thumbprint })
  })

  test('a refresh token, and none before the first login', () => {
    expect(read({ ...LOGIN, refresh_token_file: file('1//r\n') })?.refreshToken).toBe('1//r')
    const missing = { ...LOGIN, refresh_token_file: join(folder, 'missing') }
    expect(read(missing)?.refreshToken).toBeNull()
    expect(prepareFiles(load({ x: missing })).warnings.map(({ text }) => text)).toContain(
      `oauth.x: ${join(folder, 'missing')} does not exist: run deferd oauth login x`,
    )
  })

  test('the key of a service account', () => {
    const json = JSON.stringify({ type: 'service_account', client_email: 'a@p.example', private_key: pem, private_key_id: 'k1' })
    expect(read({ ...SERVICE, service_account_file: file(json) })?.account).toMatchObject({ email: 'a@p.example', keyId: 'k1' })
  })
})

const HUSH = 'hush-hush'
test.each<[string, () => object, string]>([
  ['a missing file', () => ({ ...BASE, client_secret_file: join(folder, 'gone') }), 'client_secret_file: cannot read'],
  ['an empty secret', () => ({ ...BASE, client_secret_file: file('\n') }), 'has no secret: expected one line'],
  ['a secret of two lines', () => ({ ...BASE, client_secret_file: file(`${HUSH}\n${HUSH}\n`) }), 'has no secret: expected one line'],
  ['text for a certificate', () => ({ ...BASE, client_certificate_file: file(HUSH) }), 'has no certificate (PEM)'],
  ['a certificate without a key', () => ({ ...BASE, client_certificate_file: file(CERTIFICATE) }), 'has no private key (PEM)'],
  ['a key that is not RSA', () => ({ ...BASE, client_certificate_file: file(`${CERTIFICATE}${KEY}`) }), 'needs an RSA key'],
  [
    'the key of another certificate',
    () => ({ ...BASE, client_certificate_file: file(`${CERTIFICATE}${pem}`) }),
    'not the one of its first certificate',
  ],
  ['a refresh token with blanks', () => ({ ...LOGIN, refresh_token_file: file(` ${HUSH}`) }), 'refresh_token_file: '],
  ['text for a service account', () => ({ ...SERVICE, service_account_file: file(HUSH) }), 'is no key of a service account'],
  ['JSON without a key', () => ({ ...SERVICE, service_account_file: file('{"client_email":"a"}') }), 'is no key of a service account'],
  [
    'a key of a service account that is none',
    () => ({ ...SERVICE, service_account_file: file(`{"client_email":"a","private_key":"${HUSH}"}`) }),
    'has no private key',
  ],
  ['text for CA certificates', () => ({ ...BASE, client_secret_file: file('s'), ca_file: file(HUSH) }), 'ca_file: '],
])('%s is refused at the table, without its contents', (_, table, sentence) => {
  const found = prepareFiles(load({ x: table() }))
  expect(found.kind).toBe('refused')
  if (found.kind === 'ready') return
  expect(found.problems).toMatchObject([{ where: 'oauth.x', part: 'logins', text: expect.stringContaining(sentence) as string }])
  expect(JSON.stringify(found.problems)).not.toContain(HUSH)
})

test('the mistakes of all tables and of the file of logins are refused at once', () => {
  const passwords = file('a.example ann:oauth=gone\n')
  const tables = { x: { ...BASE, client_secret_file: '/nonexistent/1' }, y: { ...BASE, client_secret_file: '/nonexistent/2' } }
  const found = prepareFiles(load(tables, { smtp_sasl_password_maps: passwords }))
  expect(found.kind === 'refused' ? found.problems.map(({ where }) => where).toSorted() : []).toEqual([
    'oauth.x',
    'oauth.y',
    'smtp_sasl_password_maps',
  ])
  expect(() => readOauthClients(load(tables), tokenCommand)).toThrow(ConfigError)
})

test.each([
  [0o640, true],
  [0o604, true],
  [0o600, false],
  [0o400, false],
])('a secret with mode %o is reported: %s', (mode, isReported) => {
  const path = file('s', mode)
  const warnings = prepareFiles(load({ x: { ...BASE, client_secret_file: path } })).warnings.map(({ text }) => text)
  expect(warnings.includes(`${path} is readable by others than its owner: chmod 600 ${path}`)).toBe(isReported)
})
