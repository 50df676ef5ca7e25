import { createHash } from 'node:crypto'
import { compactVerify, decodeProtectedHeader, jwtVerify } from 'jose'
import { describe, expect, test } from 'vitest'
import { grantRequest } from '../../src/oauth/grant-request.ts'
import { oauthClient, oauthTable, rsaKeys } from '../support/oauth-clients.ts'

const NOW = Date.UTC(2026, 0, 1, 12)
const FACTS = { now: NOW, id: 'a1b2', user: 'relay@contoso.example' }
const AT = { currentDate: new Date(NOW) }
const M365 = { provider: 'microsoft', tenant: 't', grant: 'client_credentials', client_id: 'app', client_secret_file: '/s' }

describe('client credentials', () => {
  test('with a secret: the bytes of the form', () => {
    const client = oauthClient(oauthTable(M365), { proof: { kind: 'secret', secret: 'a b&c=~+' } })
    expect(grantRequest(client, FACTS).toString()).toBe(
      'grant_type=client_credentials&client_id=app&scope=https%3A%2F%2Foutlook.office365.com%2F.default&client_secret=a+b%26c%3D%7E%2B',
    )
  })

  test('of another authority: its scope and audience', () => {
    const members = { ...M365, provider: 'other', token_url: 'https://id.example/token', scope: 'smtp mail', audience: 'urn:mail' }
    const { tenant: _, ...other } = members
    const client = oauthClient(oauthTable(other), { proof: { kind: 'secret', secret: 's' } })
    expect(grantRequest(client, FACTS).toString()).toBe(
      'grant_type=client_credentials&client_id=app&scope=smtp+mail&audience=urn%3Amail&client_secret=s',
    )
  })

  test('with a certificate: an assertion that the certificate verifies', async () => {
    const { privateKey, publicKey } = rsaKeys()
    const thumbprint = createHash('sha256').update('the certificate').digest('base64url')
    const { client_secret_file: _, ...table } = { ...M365, client_certificate_file: '/c' }
    const client = oauthClient(oauthTable(table), { proof: { kind: 'certificate', key: privateKey, thumbprint } })
    const form = grantRequest(client, FACTS)
    const assertion = form.get('client_assertion') ?? ''
    form.set('client_assertion', '')
    expect(form.toString()).toBe(
      'grant_type=client_credentials&client_id=app&scope=https%3A%2F%2Foutlook.office365.com%2F.default' +
        '&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=',
    )
    const { payload, protectedHeader } = await jwtVerify(assertion, publicKey, { ...AT, algorithms: ['PS256'] })
    expect(protectedHeader).toEqual({ alg: 'PS256', typ: 'JWT', 'x5t#S256': thumbprint })
    expect(payload).toEqual({
      aud: 'https://login.microsoftonline.com/t/oauth2/v2.0/token',
      iss: 'app',
      sub: 'app',
      jti: 'a1b2',
      nbf: NOW / 1000,
      iat: NOW / 1000,
      exp: NOW / 1000 + 300,
    })
  })
})

test('a refresh token: the bytes of the form, of a client without a secret too', () => {
  const { client_secret_file: _, ...login } = { ...M365, grant: 'refresh_token', refresh_token_file: '/r' }
  const facts = { ...FACTS, refreshToken: '1//r-t' }
  expect(grantRequest(oauthClient(oauthTable(login)), facts).toString()).toBe(
    'grant_type=refresh_token&client_id=app&refresh_token=1%2F%2Fr-t&scope=https%3A%2F%2Foutlook.office.com%2FSMTP.Send+offline_access',
  )
  const google = { provider: 'google', grant: 'refresh_token', client_id: 'app', refresh_token_file: '/r', client_secret_file: '/s' }
  expect(grantRequest(oauthClient(oauthTable(google), { proof: { kind: 'secret', secret: 'gs' } }), facts).toString()).toBe(
    'grant_type=refresh_token&client_id=app&refresh_token=1%2F%2Fr-t&scope=https%3A%2F%2Fmail.google.com%2F&client_secret=gs',
  )
})

test('a service account: an assertion for the mailbox that its key verifies', async () => {
  const { privateKey, publicKey } = rsaKeys()
  const table = oauthTable({ provider: 'google', grant: 'service_account', service_account_file: '/k' })
  const account = { email: 'relay@project.example', keyId: 'k1', key: privateKey }
  const form = grantRequest(oauthClient(table, { account }), FACTS)
  expect([...form.keys()]).toEqual(['grant_type', 'assertion'])
  expect(form.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer')
  const { payload, protectedHeader } = await jwtVerify(form.get('assertion') ?? '', publicKey, { ...AT, algorithms: ['RS256'] })
  expect(protectedHeader).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'k1' })
  expect(payload).toEqual({
    iss: 'relay@project.example',
    sub: 'relay@contoso.example',
    scope: 'https://mail.google.com/',
    aud: 'https://oauth2.googleapis.com/token',
    iat: NOW / 1000,
    exp: NOW / 1000 + 300,
  })
})

test('a signature with another key is refused by the verifier', async () => {
  const table = oauthTable({ provider: 'google', grant: 'service_account', service_account_file: '/k' })
  const account = { email: 'a@b.example', keyId: '', key: rsaKeys().privateKey }
  const assertion = grantRequest(oauthClient(table, { account }), FACTS).get('assertion') ?? ''
  expect(decodeProtectedHeader(assertion)).toEqual({ alg: 'RS256', typ: 'JWT' })
  await expect(compactVerify(`${assertion.slice(0, -8)}AAAAAAAA`, rsaKeys().publicKey)).rejects.toThrow('signature verification failed')
})
