import { describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import type { NextHop } from '../../../src/config/values/next-hop.ts'
import { chooseMechanism, malformedLogins, SaslCredentials, type Credentials } from '../../../src/delivery/tls/sasl-credentials.ts'
import type { TokenSource } from '../../../src/oauth/token-source.ts'

const NO_TOKENS: TokenSource = { get: () => Promise.reject(new Error('not asked')), replacement: () => Promise.resolve(null) }

const NO_OAUTH = { smtp_sasl_oauth: '' }

const FILE = `# comment

[hub.example]:587 port:secret
[hub.example]     brackets:se:cret
hub.example       host
app@us.example    app:token
`
const hop = (port: number, mx = false): NextHop => ({ host: 'hub.example', port, mx, origin: 'relayhost' })
const find = (nextHop: NextHop, sender = 'app@us.example', settings: Parameters<typeof configFrom>[0] = {}) =>
  new SaslCredentials(FILE, configFrom(settings, 'relay.example').config).find(nextHop, sender, NO_OAUTH)

describe('the login', () => {
  test.each([
    ['of host and port', hop(587), 'port', 'secret'],
    ['of the bracketed host at another port', hop(25), 'brackets', 'se:cret'],
    ['of the host name, without a password', hop(25, true), 'host', ''],
  ])('%s', (_, nextHop, user, password) => expect(find(nextHop)).toMatchObject({ user, password }))

  test('of the sender is preferred with smtp_sender_dependent_authentication', () => {
    const settings = { smtp_sender_dependent_authentication: 'yes' }
    expect(find(hop(587), 'APP@us.example', settings)).toMatchObject({ user: 'app', password: 'token' })
    expect(find(hop(587), '', settings)).toMatchObject({ user: 'port' })
    expect(find(hop(587), 'other@us.example', settings)).toMatchObject({ user: 'port' })
  })

  test('of the domain of the sender follows that of the sender', () => {
    const config = configFrom({ smtp_sender_dependent_authentication: 'yes' }, 'relay.example').config
    const logins = new SaslCredentials('@us.example domain:a\nann@us.example ann:b\nhub.example host:c\n', config)
    expect(
      ['ann@us.example', 'Bob@US.example', 'x@sub.us.example', ''].map((sender) => logins.find(hop(25, true), sender, NO_OAUTH)?.user),
    ).toEqual(['ann', 'domain', 'host', 'host'])
  })

  test('of the sender is found without its extension, and without needless quotes', () => {
    const settings = { smtp_sender_dependent_authentication: 'yes', recipient_delimiter: '+' }
    const logins = new SaslCredentials(
      'joe@us.example joe:a\nann+b@us.example annb:b\n@us.example all:c\nhub.example host:c\n',
      configFrom(settings, 'relay.example').config,
    )
    const senders = ['joe+x@us.example', 'JOE+x@us.example', 'ann+b@us.example', 'ann+c@us.example', '+x@us.example', 'joe+x@far.example']
    expect(senders.map((sender) => logins.find(hop(25, true), sender, NO_OAUTH)?.user)).toEqual([
      'joe',
      'joe',
      'annb',
      'all',
      'all',
      'host',
    ])
  })

  test('is missing for other next hops, and for comments', () => {
    expect(find({ ...hop(25), host: 'else.example' })).toBeUndefined()
    expect(find({ ...hop(25), host: '#' })).toBeUndefined()
  })
})

describe('an access token', () => {
  const oauth = {
    m365: { provider: 'microsoft', tenant: 'contoso.example', grant: 'client_credentials', client_id: 'a', client_secret_file: '/s' },
    own: { provider: 'other', token_url: 'https://id.example/', grant: 'client_credentials', client_id: 'a', client_secret_file: '/s' },
  }
  const lines = ['a.example ann:', 'b.example bob', 'c.example carl:secret', 'd.example dora:oauth=own', '@us.example ed:oauth=own']
  const { config } = configFrom({ oauth, smtp_sender_dependent_authentication: 'yes' }, 'relay.example')
  const logins = new SaslCredentials(lines.join('\n'), config, (name) => ({ ...NO_TOKENS, get: async () => name }))
  const found = (host: string, smtp_sasl_oauth: string, sender = '') => logins.find({ ...hop(25, true), host }, sender, { smtp_sasl_oauth })

  test.each<[string, string, string | undefined]>([
    ['a.example', 'ann', 'm365'],
    ['b.example', 'bob', 'm365'],
    ['c.example', 'carl', undefined],
    ['d.example', 'dora', 'own'],
  ])('at %s takes the place of a missing password', async (host, user, table) => {
    const login = found(host, 'm365')
    expect([login?.user, login?.oauth, await login?.tokens?.get('')]).toEqual([user, table, table])
  })

  test('is not used where the destination has no smtp_sasl_oauth', () => {
    expect(found('a.example', '')).toMatchObject({ user: 'ann', password: '' })
    expect(found('a.example', '')).not.toHaveProperty('tokens')
  })

  test('of a table that the login of a sender names', () => {
    expect(found('a.example', 'm365', 'app@us.example')).toMatchObject({ user: 'ed', oauth: 'own', prefersBearer: true })
    expect(found('a.example', 'm365')).toMatchObject({ oauth: 'm365', prefersBearer: false })
  })

  test('of a table that does not exist is refused with its line', () => {
    expect(malformedLogins('# x\na.example ann:oauth=gone\nb.example bob:oauth=own\n', config.oauth)).toEqual([
      'line 2: oauth=gone: there is no table [oauth.gone]; write the table, or the name of another one',
    ])
  })
})

describe('the mechanism', () => {
  const login = (differs: Partial<Credentials> = {}): Credentials => ({
    user: 'u',
    password: 'p',
    mechanisms: [],
    plaintext: false,
    ...differs,
  })

  test.each<[string, readonly string[], Partial<Credentials>, boolean, string | undefined]>([
    ['the first offered, with TLS', ['PLAIN', 'LOGIN'], {}, true, 'PLAIN'],
    ['none that sends the password without TLS', ['PLAIN', 'LOGIN', 'XOAUTH2'], {}, false, undefined],
    ['one that hides the password without TLS', ['PLAIN', 'CRAM-MD5'], {}, false, 'CRAM-MD5'],
    ['any without TLS when noplaintext is off', ['PLAIN'], { plaintext: true }, false, 'PLAIN'],
    ['only those of the filter', ['PLAIN', 'LOGIN'], { mechanisms: ['LOGIN'] }, true, 'LOGIN'],
    ['XOAUTH2 on request only', ['XOAUTH2', 'LOGIN'], {}, true, 'LOGIN'],
    ['XOAUTH2 on request', ['LOGIN', 'XOAUTH2'], { mechanisms: ['XOAUTH2'] }, true, 'XOAUTH2'],
    ['none that is offered', [], {}, true, undefined],
    ['XOAUTH2 for a token', ['PLAIN', 'XOAUTH2'], { tokens: NO_TOKENS }, true, 'XOAUTH2'],
    ['XOAUTH2 for a token, whatever the order', ['OAUTHBEARER', 'XOAUTH2'], { tokens: NO_TOKENS }, true, 'XOAUTH2'],
    ['OAUTHBEARER where it is preferred', ['XOAUTH2', 'OAUTHBEARER'], { tokens: NO_TOKENS, prefersBearer: true }, true, 'OAUTHBEARER'],
    ['XOAUTH2 where the preferred OAUTHBEARER is not offered', ['XOAUTH2'], { tokens: NO_TOKENS, prefersBearer: true }, true, 'XOAUTH2'],
    ['OAUTHBEARER where XOAUTH2 is not offered', ['PLAIN', 'OAUTHBEARER'], { tokens: NO_TOKENS }, true, 'OAUTHBEARER'],
    [
      'that of the filter against the preference',
      ['XOAUTH2', 'OAUTHBEARER'],
      { tokens: NO_TOKENS, prefersBearer: true, mechanisms: ['XOAUTH2'] },
      true,
      'XOAUTH2',
    ],
    ['none for a token without TLS', ['XOAUTH2', 'OAUTHBEARER'], { tokens: NO_TOKENS }, false, undefined],
    ['OAUTHBEARER for a password on request only', ['OAUTHBEARER', 'LOGIN'], {}, true, 'LOGIN'],
    ['none for a token without a mechanism for tokens', ['PLAIN', 'LOGIN'], { tokens: NO_TOKENS }, true, undefined],
    [
      'none for a token when the filter has no mechanism for tokens',
      ['PLAIN', 'XOAUTH2'],
      { tokens: NO_TOKENS, mechanisms: ['PLAIN'] },
      true,
      undefined,
    ],
  ])('%s', (_, offered, differs, secure, chosen) => expect(chooseMechanism(offered, login(differs), secure)).toBe(chosen))
})
