import { describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import type { NextHop } from '../../../src/config/values/next-hop.ts'
import { chooseMechanism, SaslCredentials, type Credentials } from '../../../src/delivery/tls/sasl-credentials.ts'
import type { TokenSource } from '../../../src/oauth/token-source.ts'

const NO_TOKENS: TokenSource = { get: () => Promise.reject(new Error('not asked')), replacement: () => Promise.resolve(null) }

const FILE = `# comment

[hub.example]:587 port:secret
[hub.example]     brackets:se:cret
hub.example       host
app@us.example    app:token
`
const hop = (port: number, mx = false): NextHop => ({ host: 'hub.example', port, mx, origin: 'relayhost' })
const find = (nextHop: NextHop, sender = 'app@us.example', settings: Parameters<typeof configFrom>[0] = {}) =>
  new SaslCredentials(FILE, configFrom(settings, 'relay.example').config).find(nextHop, sender)

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
    expect(['ann@us.example', 'Bob@US.example', 'x@sub.us.example', ''].map((sender) => logins.find(hop(25, true), sender)?.user)).toEqual([
      'ann',
      'domain',
      'host',
      'host',
    ])
  })

  test('of the sender is found without its extension, and without needless quotes', () => {
    const settings = { smtp_sender_dependent_authentication: 'yes', recipient_delimiter: '+' }
    const logins = new SaslCredentials(
      'joe@us.example joe:a\nann+b@us.example annb:b\n@us.example all:c\nhub.example host:c\n',
      configFrom(settings, 'relay.example').config,
    )
    const senders = ['joe+x@us.example', 'JOE+x@us.example', 'ann+b@us.example', 'ann+c@us.example', '+x@us.example', 'joe+x@far.example']
    expect(senders.map((sender) => logins.find(hop(25, true), sender)?.user)).toEqual(['joe', 'joe', 'annb', 'all', 'all', 'host'])
  })

  test('is missing for other next hops, and for comments', () => {
    expect(find({ ...hop(25), host: 'else.example' })).toBeUndefined()
    expect(find({ ...hop(25), host: '#' })).toBeUndefined()
  })
})

describe('an access token', () => {
  const { config } = configFrom({}, 'relay.example')
  const logins = new SaslCredentials('a.example ann:\nb.example bob\nc.example carl:secret\n', config, NO_TOKENS)

  test.each([
    ['a.example', 'ann', true],
    ['b.example', 'bob', true],
    ['c.example', 'carl', false],
  ])('at %s takes the place of a missing password', (host, user, usesToken) => {
    const found = logins.find({ ...hop(25, true), host }, '')
    expect([found?.user, found?.tokens !== undefined]).toEqual([user, usesToken])
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
